package page_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quorlease/quorlease/bench/storm"
	"github.com/quorlease/quorlease/bench/storm/page"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// sample is a storm, the same with Quorlease, and one that stands alone.
func sample() *page.Result {
	end := func(v float64) *float64 { return &v }
	figure := func(m storm.Measure, name, unit string, value float64) storm.Figure {
		return storm.Figure{Measure: m, Name: name, Unit: unit, Value: value, OK: true}
	}
	perDone := figure(storm.PerDone, "attempts for a task done", "", 141.143)
	perDone.Low, perDone.High = end(136), end(143)
	paced := perDone
	paced.Value, paced.Low, paced.High = 1.0004, nil, end(1.2)
	wait := figure(storm.LiveP99, "live tasks wait, p99", "s", 0.4)
	wait.High, wait.OK = end(0.25), false
	done := figure(storm.Done, "tasks done", "", 7)
	done.Low, done.High = end(7), end(7)
	live := figure(storm.LivePart, "live tasks done", "%", 100)
	live.Low = end(99.9)
	r := &page.Result{Version: "v0.0.0-test", Seed: 1, Scenarios: []*storm.Outcome{
		{
			Slug: "before", Title: "everybody at once", Text: "What happened.", OK: true,
			Figures:  []storm.Figure{figure(storm.Attempts, "attempts", "", 988), done, perDone},
			Timeline: &storm.Timeline{SlotMS: 500, Admitted: []int64{1, 0, 2, 0}, Refused: []int64{199, 0, 198, 0}},
		},
		{Slug: "alone", Title: "nobody beside it", Figures: []storm.Figure{done}, OK: true},
		{
			Slug: "after", Title: "one after the other", Text: "What happens now.", Twins: []string{"before"},
			Figures: []storm.Figure{paced, live, wait},
			Timeline: &storm.Timeline{
				SlotMS: 500, Admitted: []int64{1, 1, 1, 1}, Refused: []int64{0, 0, 0, 0}, Waiting: []int64{3, 2, 1, 0},
			},
			Clients: []storm.Client{{
				Client: "backfill", Requests: 1205, Forwarded: 4, Served: 4, Tokens: 11_200,
				Refused: map[string]int64{"queue_timeout": 1, "retry_budget_exceeded": 1200},
			}},
		},
	}}
	r.Sum()
	return r
}

func TestGolden(t *testing.T) {
	t.Parallel()
	r := sample()
	for name, write := range map[string]func(io.Writer) error{
		"sample.text": r.Text, "sample.json": r.JSON, "sample.html": r.HTML, "sample.svg": r.Picture,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			if err := write(&out); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", name)
			if *update {
				if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), out.String()); diff != "" {
				t.Errorf("differs from %s (-want +got); `go test -update` rewrites it:\n%s", path, diff)
			}
			for _, wrong := range []string{"NaN", "Inf", "ZgotmplZ", "<script", "@import", "<link", "<img"} {
				if strings.Contains(out.String(), wrong) {
					t.Errorf("%s has %q", name, wrong)
				}
			}
		})
	}
}

// TestBroken: what is out of its range is named, with what was wanted.
func TestBroken(t *testing.T) {
	t.Parallel()
	want := []string{"after: live tasks wait, p99: got 0.4 s, want at most 0.25 s"}
	r := sample()
	if diff := cmp.Diff(want, r.Broken()); diff != "" || r.OK {
		t.Errorf("ok %v, broken (-want +got):\n%s", r.OK, diff)
	}
}

// TestReferenceHasEveryField: what -o json prints is documented.
func TestReferenceHasEveryField(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "reference", "bench.md"))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := sample().JSON(&out); err != nil {
		t.Fatal(err)
	}
	if !json.Valid(out.Bytes()) {
		t.Error("the result is no JSON")
	}
	_, storms, found := strings.Cut(string(text), "\n# The result of a storm\n")
	if !found {
		t.Fatal("docs/reference/bench.md has no part about storms")
	}
	for _, field := range regexp.MustCompile(`"([a-z0-9_]+)":`).FindAllStringSubmatch(out.String(), -1) {
		if !strings.Contains(storms, "`"+field[1]+"`") {
			t.Errorf("field %q is not in docs/reference/bench.md", field[1])
		}
	}
}
