package sheet

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quorlease/quorlease/bench/bound"
	"github.com/quorlease/quorlease/bench/plot"
	"github.com/quorlease/quorlease/bench/report"
	"github.com/quorlease/quorlease/bench/stat"
)

// sample has a bound of each verdict, a guarantee that broke, and a part that failed.
func sample() *Sheet {
	flat := func(value float64) *stat.Spread { return &stat.Spread{Median: value, Min: value, Max: value} }
	ratio := bound.Bound{Bound: "a-b", Name: "a over b", Least: new(0.75)}
	ratio.Ours = &bound.Term{Unit: "/s", Got: *flat(50_000)}
	ratio.Beside = &bound.Term{Name: "b|c", Unit: "/s", Got: *flat(80_000)}
	there := bound.Bound{Bound: "there", Name: "beside what is required", Least: new(2.0), Required: true}
	bars := plot.Bars{Title: "bars", Bars: []plot.Bar{{Name: "a", Class: "quorlease", Low: 1, Median: 2, High: 3}}}
	return &Sheet{
		Title: "quorlease bench all", Version: "v1.2.3",
		Place: Place{Date: "2026-11-30", Machine: "A processor", Processors: 2, Platform: "linux/amd64"},
		Sections: []Section{
			{
				Section: "compare", Title: "Beside <others>", Heading: []string{"some callers"},
				Tables: []Table{{Title: "a table", Heads: []string{"", "rate"}, Rows: [][]string{{"a & b", "50,000"}}}},
				Bars:   []plot.BarsDrawing{bars.Draw()},
				Bounds: []bound.Bound{
					ratio.Judge(flat(0.625), "", true),
					bound.Bound{Bound: "p99", Name: "p99", Unit: "ms", Most: new(2.5)}.Judge(flat(2), "", true),
					there.Judge(nil, "it is not there", true),
					bound.Bound{Bound: "read", Name: "to be read"}.Judge(flat(3), "", true),
				},
				Checks: []report.Check{
					{Guarantee: "G2", By: "a clock", OK: true, Text: "kept"}, {Guarantee: "G1", By: "a log", Text: "a token too many"},
				},
				Lists: []List{{Title: "not measured", Lines: []string{"etcd: left out"}}},
				Notes: []string{"a note"},
				Brief: &Table{Title: "in short", Heads: []string{"who", "rate"}, Rows: [][]string{{"a", "50,000"}}},
			},
			{Section: "scale", Title: "How it scales", Failed: "no nodes"},
		},
	}
}

func TestMissed(t *testing.T) {
	t.Parallel()
	want := []string{
		"G1 broken, by a log: a token too many",
		"a over b: 0.625 is not ≥ 0.75",
		"beside what is required: not measured: it is not there, and it is required",
		"scale: no nodes",
	}
	if diff := cmp.Diff(want, sample().Missed()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := sample().Text(&out); err != nil {
		t.Fatal(err)
	}
	want := `2026-11-30; A processor, 2 processors for servers and callers together, linux/amd64; quorlease v1.2.3

=== compare: Beside <others>
some callers

a table
         rate
  a & b  50,000

not measured
  etcd: left out

1 of 2 checks of G1 and G2 FAILED
a note
G1 BROKEN, by a log: a token too many

=== scale: How it scales
FAILED: no nodes

figure                     measured                       bound                   of
compare                                                                           
  a over b                 0.625                          ≥ 0.75    MISSED        50,000/s over b|c 80,000/s
  p99                      2 ms                           ≤ 2.5 ms  kept          
  beside what is required  not measured: it is not there  ≥ 2       NOT MEASURED  
  to be read               3                                                      
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestMarkdown: a document gets what has a bound, and nothing else of it changes.
func TestMarkdown(t *testing.T) {
	t.Parallel()
	s := sample()
	tables := "<!-- quorlease bench all: begins -->\n\n" +
		"2026-11-30; A processor, 2 processors for servers and callers together, linux/amd64; quorlease v1.2.3. " +
		"Medians (lowest to highest).\n\n" +
		"| figure | Quorlease | beside it | ratio | bound |\n" +
		"| --- | --- | --- | --- | --- |\n" +
		"| a over b | 50,000/s | b\\|c 80,000/s | 0.625 | ≥ 0.75, MISSED |\n" +
		"| p99 | 2 ms |  |  | ≤ 2.5 ms, kept |\n" +
		"| beside what is required | not measured: it is not there |  |  | ≥ 2, NOT MEASURED |\n" +
		"| Beside <others>: guarantees | 1 of 2 checks of G1 and G2 FAILED |  |  |  |\n" +
		"| How it scales | FAILED: no nodes |  |  |  |\n" +
		"\nin short\n\n| who | rate |\n| --- | --- |\n| a | 50,000 |\n" +
		"\n<!-- quorlease bench all: ends -->"
	if diff := cmp.Diff(tables+"\n", s.Into("")); diff != "" {
		t.Errorf("of nothing (-want +got):\n%s", diff)
	}
	before := "# A document\n\n" + begins + "\nold\n" + ends + "\n\nmore\n"
	if diff := cmp.Diff("# A document\n\n"+tables+"\n\nmore\n", s.Into(before)); diff != "" {
		t.Errorf("of a document (-want +got):\n%s", diff)
	}
	if s.Into(s.Into(before)) != s.Into(before) {
		t.Error("twice is not once")
	}
	for document, fits := range map[string]bool{
		"": true, before: true, "text": false, begins: false, ends + begins: false,
	} {
		if err := Fits(document); (err == nil) != fits {
			t.Errorf("%q: %v", document, err)
		}
	}
}

// TestPage: the page is whole, needs nothing from anywhere, and says in words what it says
// in colours.
func TestPage(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]*Sheet{"sample": sample(), "nothing": {Title: "nothing"}} {
		var out bytes.Buffer
		if err := s.HTML(&out); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		text := out.String()
		for _, wrong := range []string{
			"<script", "http:", "https:", "url(", "@import", "<link", "<img", "NaN", "Inf", "ZgotmplZ", "<others>",
		} {
			if strings.Contains(text, wrong) {
				t.Errorf("%s: the page has %q", name, wrong)
			}
		}
		if _, body, found := strings.Cut(text, "<body>"); found {
			body, _, _ = strings.Cut(body, "</body>")
			if err := whole("<body>" + strings.ReplaceAll(body, "<br>", "<br/>") + "</body>"); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if name != "sample" {
			continue
		}
		for _, want := range []string{
			`<span class="bad">MISSED</span>`, `<span class="ok">kept</span>`, `<span class="bad">NOT MEASURED</span>`,
			"not everything was kept", "FAILED: no nodes", "b|c 80,000/s", "etcd: left out", `<section id="scale">`,
		} {
			if !strings.Contains(text, want) {
				t.Errorf("the page lacks %q", want)
			}
		}
	}
}

// whole reads XML to its end.
func whole(text string) error {
	decoder := xml.NewDecoder(strings.NewReader(text))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func TestHere(t *testing.T) {
	t.Parallel()
	if p := Here(); p.Date == "" || p.Processors < 1 || !strings.Contains(p.Platform, "/") {
		t.Errorf("%+v", p)
	}
}
