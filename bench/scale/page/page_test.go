package page

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quorlease/quorlease/bench/bound"
	"github.com/quorlease/quorlease/bench/report"
	"github.com/quorlease/quorlease/bench/sheet"
)

// update rewrites the golden files instead of comparing with them.
var update = flag.Bool("update", false, "rewrite golden files")

// round is one of a second, all from escrow.
func round(perSecond, micros, p99, generator float64) Round {
	granted := int64(perSecond)
	return Round{
		Side: report.Side{
			Granted: granted, Escrow: granted, Seconds: 1, DecisionsPerSecond: perSecond, GrantsPerSecond: perSecond,
			P50: p99 / 3, P99: p99, P999: p99 * 2, Max: p99 * 3, Fairness: 0.99, CPU: &micros,
			Percentiles: []report.Point{{Percent: 50, MS: p99 / 3}},
		},
		Generator: generator, Busiest: 0.1, Entries: 20, Gap: p99 / 2, Touched: 100,
	}
}

// sample is a run of two rounds in which five nodes gave too little.
func sample() *Result {
	point := func(at int64, callers, keys int, rounds ...Round) Point {
		return Point{At: at, Voters: 3, Callers: callers, Keys: keys, Rounds: rounds, Failures: map[string]int64{}}
	}
	r := &Result{
		Version: "v1.2.3",
		Settings: Settings{
			Place: sheet.Place{Date: "2026-11-30", Machine: "A processor", Processors: 2, Platform: "linux/amd64"}, Share: 0.1,
			Steady: 100_000, Rounds: 2, WarmupMS: 1000, LengthMS: 1000,
		},
		Nodes: []Point{
			point(1, 64, 100, round(12_000, 8, 30, 0.1), round(12_000, 8.4, 30, 0.1)),
			point(3, 192, 100, round(33_000, 8.8, 31, 0.3), round(34_000, 8.6, 31, 0.3)),
			point(5, 320, 100, round(40_000, 9, 33, 0.6), round(41_000, 9, 32, 0.6)),
			point(7, 448, 100, round(66_000, 9.5, 33, 0.9), round(65_000, 10, 32, 0.9)),
		},
		Keys: []Point{
			point(1, 1024, 1, round(210_000, 4, 5, 0.5), round(220_000, 4, 5, 0.5)),
			point(1000, 1024, 1000, round(200_000, 4.5, 5, 0.5), round(200_000, 4.5, 5, 0.5)),
			point(1_000_000, 1024, 1_000_000, round(90_000, 14, 15, 0.4), round(110_000, 12, 14, 0.4)),
		},
		Callers: []Point{
			point(1, 1, 100, round(9000, 30, 0.2, 0.4), round(9500, 30, 0.2, 0.4)),
			point(4096, 4096, 100, round(300_000, 3, 20, 0.9), round(310_000, 3, 21, 0.9)),
		},
		Entries: []Point{
			point(100, 1024, 100, round(99_800, 4, 2, 0.9), round(99_900, 4, 2, 0.9)),
		},
		Snapshots: []Snapshot{
			{
				At: 1000, Callers: 128, Bytes: 60_000, Taken: 3, PauseMean: 0.1, PauseMost: 0.2,
				During: round(40_000, 12, 6, 0).Side,
			},
			{
				At: 1_000_000, Callers: 128, Bytes: 61_000_000, Taken: 4, PauseMean: 3, PauseMost: 4.5,
				During: round(38_000, 13, 9, 0).Side,
			},
		},
		Checks: []report.Check{
			{Guarantee: "G1", By: "the log of n1 (1 node, round 1)", OK: true, Text: "12000 tokens in 100 buckets"},
			{Guarantee: "G2", By: "the clients' clock (1 node, round 1)", OK: true, Text: "12000 tokens in 100 buckets"},
		},
	}
	r.Nodes[0].Voters, r.Nodes[2].Learners, r.Nodes[3].Learners = 1, 2, 4
	r.Callers[1].Rounds[0].Failed, r.Callers[1].Failures["UNAVAILABLE"] = 1, 1
	r.Sum()
	return r
}

// TestGolden compares every form with the file that scripts and people rely on.
func TestGolden(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(io.Writer) error{
		"sample.txt": sample().Text, "sample.json": sample().JSON, "sample.html": sample().HTML,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got bytes.Buffer
			if err := write(&got); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", name)
			if *update {
				if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("differs from %s (-want +got); `go test -update` rewrites it:\n%s", path, diff)
			}
		})
	}
}

// TestMissed: a bound is missed, each by its name; seven nodes are there to be read.
func TestMissed(t *testing.T) {
	t.Parallel()
	r := sample()
	want := []string{
		"5 nodes: grants a second over 5 times those of one: 0.675 (0.667 to 0.683) is not ≥ 0.8",
		"5 nodes: grants a second, a node, over those of 3: 0.725 (0.724 to 0.727) is not ≥ 0.8",
	}
	if diff := cmp.Diff(want, r.Missed()); diff != "" || r.OK {
		t.Errorf("ok %v, missed (-want +got):\n%s", r.OK, diff)
	}
	r.Checks[0].OK = false
	r.Snapshots[1].PauseMost = 11
	r.Keys[2].Rounds[0].Gap, r.Keys[2].Rounds[1].Gap = 12, 13
	r.Keys[2].Rounds[0].GrantsPerSecond, r.Keys[2].Rounds[1].GrantsPerSecond = 70_000, 70_000
	r.Entries[0].Rounds[0].Entries, r.Entries[0].Rounds[1].Entries = 501, 502
	r.Sum()
	want = append(append([]string{"G1 broken, by the log of n1 (1 node, round 1): 12000 tokens in 100 buckets"}, want...),
		"1,000,000 keys: grants a second over those of 1,000: 0.35 is not ≥ 0.4 (aim 0.7)",
		"1,000,000 keys: longest time without a grant: 12.5 ms (12 to 13) is not ≤ 10 ms",
		"log entries at a steady 100,000 grants a second on 100 buckets: 502/s (501 to 502) is not ≤ 500/s",
		"1,000,000 buckets: longest pause of applying for a snapshot: 11 ms is not ≤ 10 ms",
	)
	if diff := cmp.Diff(want, r.Missed()); diff != "" {
		t.Errorf("missed (-want +got):\n%s", diff)
	}
}

// TestBoundless: what is too short, or has no shares, is held to nothing but the
// guarantees, and says why.
func TestBoundless(t *testing.T) {
	t.Parallel()
	hasty := sample()
	hasty.Settings.Hasty = true
	hasty.Sum()
	if got := hasty.Missed(); len(got) != 0 || !hasty.OK {
		t.Errorf("too short: %q", got)
	}
	unshared := sample()
	unshared.Settings.Share, unshared.Settings.Unshared = 0, "not root"
	unshared.Sum()
	if got := unshared.Missed(); len(got) != 0 || !unshared.OK {
		t.Errorf("without shares: %q", got)
	}
	for i := range unshared.Bounds {
		b := &unshared.Bounds[i]
		if strings.HasPrefix(b.Bound, "nodes-5-") &&
			(b.Verdict() != bound.NotMeasured || b.Why != "nodes had no share of a processor each: not root") {
			t.Errorf("without shares: %+v", b)
		}
	}
	if len(unshared.Notes) == 0 || !strings.HasSuffix(unshared.Notes[0], "held to no bound: not root") {
		t.Errorf("without shares: notes %q", unshared.Notes)
	}
}

// TestSteady: a machine that does not give the rate says nothing of its entries.
func TestSteady(t *testing.T) {
	t.Parallel()
	r := sample()
	for i := range r.Entries[0].Rounds {
		r.Entries[0].Rounds[i].GrantsPerSecond = 94_000
	}
	r.Sum()
	for i := range r.Bounds {
		b := &r.Bounds[i]
		if b.Bound == "entries-100" &&
			(b.Verdict() != bound.NotMeasured || b.Why != "there were only 94,000 grants a second") {
			t.Errorf("%+v", b)
		}
	}
}

// TestNotes: whatever else than nodes may have been measured is said.
func TestNotes(t *testing.T) {
	t.Parallel()
	r := sample()
	for i := range r.Nodes[0].Rounds {
		r.Nodes[0].Rounds[i].DecisionsPerSecond, r.Nodes[0].Rounds[i].Escrow = 5000, 0
	}
	r.Settings.Processors = 1
	r.Sum()
	want := []string{
		"1 node: they used 0.041 of a processor, less than their shares: nodes were not what was short",
		"1 node: 0 of the grants came from escrow, the rest were entries of the log",
		"5 nodes: the callers used 0.6 of a processor, more than 0.5: they may be what was measured",
		"5 nodes: they used 0.364 of a processor, less than their shares: nodes were not what was short",
		"7 nodes: the callers used 0.9 of a processor, more than 0.5: they may be what was measured",
		"7 nodes: their shares and the callers need 1.2 processors, there are 1",
	}
	if diff := cmp.Diff(want, r.Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

// The page must be whole and must need nothing from anywhere.
func TestPage(t *testing.T) {
	t.Parallel()
	nothing := &Result{}
	nothing.Sum()
	for name, r := range map[string]*Result{"sample": sample(), "nothing happened": nothing} {
		var out bytes.Buffer
		if err := r.HTML(&out); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, wrong := range []string{
			"<script", "http:", "https:", "url(", "@import", "<link", "<img", "NaN", "Inf", "ZgotmplZ",
		} {
			if strings.Contains(out.String(), wrong) {
				t.Errorf("%s: the page has %q", name, wrong)
			}
		}
		for _, picture := range strings.Split(out.String(), "<svg")[1:] {
			picture, _, _ = strings.Cut("<svg"+picture, "</svg>")
			if err := whole(picture + "</svg>"); err != nil {
				t.Errorf("%s: %v in %s", name, err, picture)
			}
		}
		if err := r.Text(io.Discard); err != nil {
			t.Errorf("%s: %v", name, err)
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

// Every field, and every kind of bound, is in the reference.
func TestReferenceHasEveryField(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "reference", "bench.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, ours, found := strings.Cut(string(text), "# The result of a measure of scaling\n")
	if !found {
		t.Fatal("docs/reference/bench.md has no section on it")
	}
	documented := map[string]bool{}
	for _, code := range regexp.MustCompile("`[^`]*`").FindAllString(string(text), -1) {
		for _, word := range regexp.MustCompile(`[A-Za-z0-9_-]+`).FindAllString(code, -1) {
			documented[word] = true
		}
	}
	var out bytes.Buffer
	if err := sample().JSON(&out); err != nil {
		t.Fatal(err)
	}
	for _, field := range regexp.MustCompile(`"([a-z0-9_]+)":`).FindAllStringSubmatch(out.String(), -1) {
		if !documented[field[1]] {
			t.Errorf("field %q is not in docs/reference/bench.md", field[1])
		}
	}
	for _, b := range sample().Bounds {
		if kind := regexp.MustCompile(`[0-9]+`).ReplaceAllString(b.Bound, "N"); !strings.Contains(ours, "`"+kind+"`") {
			t.Errorf("bound %s is not in docs/reference/bench.md", kind)
		}
	}
}
