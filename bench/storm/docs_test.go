package storm_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/quorlease/quorlease/bench/storm"
	"github.com/quorlease/quorlease/bench/storm/page"
)

var update = flag.Bool("update", false, "rewrite the page and its picture")

var outcomes sync.Map

// seedOne is what a scenario comes to with the first seed. It runs once, whoever
// asks.
func seedOne(s storm.Scenario) *storm.Outcome {
	run, _ := outcomes.LoadOrStore(s.Slug, sync.OnceValue(func() *storm.Outcome { return s.Run(1) }))
	return run.(func() *storm.Outcome)()
}

// shown are the lines of the table in docs/concepts/storms.md: a measure before
// and after.
var shown = []struct {
	what          string
	before, after string
	measure       storm.Measure
	// now is another measure of the after run, where it is not the same.
	now storm.Measure
}{
	{"batch job: its requests a minute at the provider", "s1-peak", "s1-fair", storm.BatchMinute, ""},
	{"batch job: other teams' requests refused", "s1-peak", "s1-fair", storm.LegitRefused, ""},
	{"batch job: tokens metered for what was refused", "s1-reconciled", "s1-reconciled", storm.Billed, storm.BilledAfter},
	{"fleet: different jobs done, of 2,000", "s2-naive", "s2-ours", storm.Unique, ""},
	{"fleet: attempts for a job done", "s2-naive", "s2-ours", storm.PerDone, ""},
	{"fleet: jobs executed twice", "s2-naive", "s2-ours", storm.Duplicates, ""},
	{"fleet: other tenants, p95", "s2-naive", "s2-ours", storm.OthersP95, ""},
	{"fleet: a fallback's part of all money", "s2-naive", "s2-ours", storm.FallbackPart, storm.AwarePart},
	{"night: attempts for a task done", "s3-sustained", "s3-after", storm.PerDone, ""},
	{"night: live tasks done", "s3-sustained", "s3-after", storm.LivePart, ""},
	{"night: attempts refused by the provider", "s3-sustained", "s3-after", storm.RefusedPart, ""},
	{"night: retries that come together (herd)", "s3-sustained", "s3-after", storm.HerdNow, ""},
}

// table is the page's table from what the scenarios came to.
func table(t *testing.T, r *page.Result) string {
	t.Helper()
	figure := func(slug string, m storm.Measure) string {
		for _, o := range r.Scenarios {
			if f, ok := o.Figure(m); ok && o.Slug == slug {
				return page.Amount(f)
			}
		}
		t.Fatalf("%s has no %s", slug, m)
		return ""
	}
	var out strings.Builder
	out.WriteString("| | before | with Quorlease |\n|---|---|---|\n")
	for _, line := range shown {
		now := line.measure
		if line.now != "" {
			now = line.now
		}
		fmt.Fprintf(&out, "| %s | %s | %s |\n", line.what, figure(line.before, line.measure), figure(line.after, now))
	}
	return out.String()
}

// TestConcepts: docs/concepts/storms.md prints what the scenarios come to, and its
// picture is theirs.
func TestConcepts(t *testing.T) {
	t.Parallel()
	r := &page.Result{Version: "v0.0.0-test", Seed: 1}
	all := storm.All()
	r.Scenarios = make([]*storm.Outcome, len(all))
	for i, s := range all {
		r.Scenarios[i] = seedOne(s)
	}
	r.Sum()
	if !r.OK {
		t.Errorf("%v", r.Broken())
	}
	concepts := filepath.Join("..", "..", "docs", "concepts")
	var picture bytes.Buffer
	if err := r.Picture(&picture); err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- written by go test ./bench/storm -update -->\n", "<!-- so far -->\n"
	path := filepath.Join(concepts, "storms.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no place for the table", path)
	}
	for file, want := range map[string]string{
		path: before + begin + table(t, r) + end + after, filepath.Join(concepts, "storms.svg"): picture.String(),
	} {
		if *update {
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%s is out of date (%v); `go test -update` rewrites it", file, err)
		}
	}
}
