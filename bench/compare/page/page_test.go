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
	"github.com/quorlease/quorlease/bench/stat"
)

// update rewrites the golden files instead of comparing with them.
var update = flag.Bool("update", false, "rewrite golden files")

// sample is a run of two rounds: one bound was missed, etcd was not there, Redis
// gave too much.
func sample() *Result {
	round := func(perSecond, p99, micros float64, escrow bool) report.Side {
		s := report.Side{
			Granted: int64(perSecond), Seconds: 1, DecisionsPerSecond: perSecond, GrantsPerSecond: perSecond,
			P50: p99 / 3, P99: p99, P999: p99 * 2, Max: p99 * 3, Fairness: 0.99, CPU: &micros,
			Percentiles: []report.Point{{MS: p99 / 10}, {Percent: 50, MS: p99 / 3}, {Percent: 100, MS: p99 * 3}},
		}
		if escrow {
			s.Escrow = s.Granted
		}
		return s
	}
	side := func(slug, name, system string, kind Kind, rounds ...report.Side) Side {
		return Side{
			Side: slug, Name: name, System: system, Kind: kind, Rounds: rounds, Failures: map[string]int64{},
		}
	}
	r := &Result{
		Version: "v1.2.3",
		Settings: Settings{
			Place:   sheet.Place{Date: "2026-11-30", Machine: "A processor", Processors: 2, Platform: "linux/amd64"},
			Callers: 128, Keys: 100, Required: []string{"ratelimit"}, Distribution: "uniform",
			PacedRate: 10_000, Rounds: 2, WarmupMS: 500, LengthMS: 2000,
		},
		Sides: []Side{
			side("echo-unary", "bare gRPC echo, unary", "echo", Unary,
				round(70_000, 5, 11, false), round(80_000, 5.5, 12, false)),
			side("echo-stream", "bare gRPC echo, stream", "echo", Stream,
				round(300_000, 1.4, 2, false), round(320_000, 1.5, 2.2, false)),
			side("escrow-unary", "Quorlease from escrow, unary", "quorlease", Unary,
				round(63_000, 5.5, 13, true), round(64_000, 6, 13, true)),
			side("consensus-unary", "Quorlease by consensus, unary", "quorlease", Unary,
				round(25_000, 9, 35, false), round(26_000, 9, 35, false)),
			side("escrow-session", "Quorlease from escrow, session", "quorlease", Stream,
				round(250_000, 1.9, 2.7, true), round(260_000, 2, 2.8, true)),
			side("consensus-session", "Quorlease by consensus, session", "quorlease", Stream,
				round(50_000, 6, 11, false), round(52_000, 9.5, 12, false)),
			side("escrow-paced", "Quorlease from escrow, session", "quorlease", Paced,
				round(10_000, 0.3, 5, true), round(10_000, 0.3, 5, true)),
			side("ratelimit", "envoyproxy/ratelimit + Redis", "ratelimit", Unary,
				round(26_000, 11, 52, false), round(28_000, 11, 52, false)),
			side("redis-memory-single", "Redis script, no AOF, a call a connection", "redis-memory", Unary,
				round(100_000, 2, 9, false), round(102_000, 2, 9, false)),
			side("redis-memory-pipelined", "Redis script, no AOF, pipelined", "redis-memory", Stream,
				round(160_000, 1.5, 5, false), round(170_000, 1.5, 5, false)),
		},
		Trials: []Trial{
			{
				Trial: "escrow", Name: "Quorlease from escrow", Copies: "2 of 3 nodes, before it is asked for", Disk: "synced",
				Keys: 4, Burst: 1000, PerSecond: 40, Seconds: 3.5, Before: 4100, After: 12, Escrow: 900,
			},
			{
				Trial: "redis-memory", Name: "Redis, no AOF", Copies: "1 server's memory", Disk: "no",
				Keys: 4, Burst: 1000, PerSecond: 40, Seconds: 1, Before: 4004, After: 4003, Over: 3847,
			},
			{
				Trial: "redis-always", Name: "Redis, appendfsync always", Copies: "1 server", Disk: "synced",
				Keys: 4, Burst: 1000, PerSecond: 40, Failed: "start again: it ended before it answered",
			},
		},
		Checks: []report.Check{
			{Guarantee: "G1", By: "the log of n2", OK: true, Text: "3 tokens in 1 buckets"},
			{Guarantee: "G2", By: "the clients' clock (load)", OK: true, Text: "3 tokens in 1 buckets"},
		},
		Missing: []Missing{
			{System: "etcd", Why: "there is no etcd", How: "apt-get install etcd-server"},
			{System: "gubernator", Why: "left out"},
		},
	}
	for i, version := range []string{"ratelimit 1.4.1", "redis-server 7.0.15", "redis-server 7.0.15"} {
		r.Sides[7+i].SystemVersion = version
	}
	r.Sides[7].Rounds[1].Failed, r.Sides[7].Failures["UNAVAILABLE"] = 3, 3
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

// judged finds one by its slug.
func judged(t *testing.T, r *Result, slug string) *bound.Bound {
	t.Helper()
	for i := range r.Bounds {
		if r.Bounds[i].Bound == slug {
			return &r.Bounds[i]
		}
	}
	t.Fatalf("no bound %s", slug)
	return nil
}

func TestBounds(t *testing.T) {
	t.Parallel()
	r := sample()
	// Ratios are those of each round, not those of medians.
	b := judged(t, r, "escrow-unary-echo")
	if want := stat.SpreadOf([]float64{63.0 / 70, 64.0 / 80}); *b.Got != want {
		t.Errorf("escrow over echo %+v, want %+v", *b.Got, want)
	}
	if b.Ours.Got.Median != 63_500 || b.Beside.Got.Median != 75_000 || b.Beside.Name != "bare gRPC echo, unary" {
		t.Errorf("made of %+v and %+v", b.Ours, b.Beside)
	}
	if b := judged(t, r, "consensus-session-put"); b.Got != nil || !b.OK || b.Why != "etcd: there is no etcd" {
		t.Errorf("beside a system that is not there: %+v", b)
	}
	if b := judged(t, r, "escrow-session-held"); b.Got.Median != 1 || b.Verdict() != bound.Kept {
		t.Errorf("all from escrow: %+v, %s", b.Got, b.Verdict())
	}
}

// TestWhatSaysNothing: nobody is better than one who does not do what he is asked for,
// and one who has to be there is not let off by that.
func TestWhatSaysNothing(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change             func(r *Result)
		slug, why, verdict string
	}{
		"half of it is refused": {
			func(r *Result) { r.Sides[7].Rounds[1].Denied = r.Sides[7].Rounds[1].Granted },
			"escrow-unary-ratelimit", "ratelimit refused or failed 0.341 of what it was asked for", bound.NotThere,
		},
		"some of it fails": {
			func(r *Result) { r.Sides[7].Rounds[0].Failed = 100 },
			"escrow-session-ratelimit", "ratelimit refused or failed 0.002 of what it was asked for", bound.NotThere,
		},
		"a round of nothing": {
			func(r *Result) { r.Sides[9].Rounds[1].Granted = 0 },
			"escrow-session-redis", "redis-memory-pipelined granted nothing in round 2", bound.NotMeasured,
		},
		"of the echo": {
			func(r *Result) { r.Sides[1].Rounds[0].Granted = 0 },
			"escrow-session-echo", "echo-stream granted nothing in round 1", bound.NotThere,
		},
		"of this program": {
			func(r *Result) { r.Sides[4].Rounds[0].Granted = 0 },
			"escrow-session-p99", "escrow-session granted nothing in round 1", bound.NotThere,
		},
		"processor time that is not known": {
			func(r *Result) { r.Sides[4].Rounds[1].CPU = nil },
			"escrow-session-cpu", "the processor time of escrow-session in round 2 is not known", bound.NotThere,
		},
		"what is required and not there": {
			func(r *Result) { r.Settings.Required = append(r.Settings.Required, "etcd") },
			"consensus-session-put", "etcd: there is no etcd", bound.NotThere,
		},
	} {
		r := sample()
		row.change(r)
		r.Sum()
		b := judged(t, r, row.slug)
		if b.Got != nil || b.Why != row.why || b.Verdict() != row.verdict || r.OK != (row.verdict == bound.NotMeasured) {
			t.Errorf("%s: %+v, %s, ok %v", name, b, b.Verdict(), r.OK)
		}
	}
	// What this program refuses is its own bound.
	r := sample()
	r.Sides[4].Rounds[0].Failed, r.Sides[4].Rounds[1].Denied = 1000, 1000
	r.Sum()
	if b := judged(t, r, "refused"); b.Verdict() != bound.Missed || r.OK {
		t.Errorf("%+v", b)
	}
}

// A bound is missed, each by its name, and only a grant too many of our own.
func TestMissed(t *testing.T) {
	t.Parallel()
	r := sample()
	if got := r.Missed(); len(got) != 0 || !r.OK {
		t.Errorf("everything was kept, got %q", got)
	}
	for i := range r.Sides {
		for n := range r.Sides[i].Rounds {
			if r.Sides[i].Side == "consensus-session" {
				r.Sides[i].Rounds[n].P99 = 9
			}
			if r.Sides[i].Side == "escrow-session" {
				r.Sides[i].Rounds[n].Escrow = 0
			}
		}
	}
	r.Trials[0].Over = 2
	r.Checks[1].OK = false
	r.Sum()
	want := []string{
		"G2 broken, by the clients' clock (load): 3 tokens in 1 buckets",
		"escrow, session: part granted from escrow: 0 is not ≥ 0.99",
		"consensus, session: p99: 9 ms is not ≤ 8 ms",
		"Quorlease from escrow, killed: tokens over-admitted: 2 is not 0",
	}
	if diff := cmp.Diff(want, r.Missed()); diff != "" || r.OK {
		t.Errorf("ok %v, missed (-want +got):\n%s", r.OK, diff)
	}
	r.Trials[0].Over, r.Trials[0].Failed = 0, "nobody answered"
	r.Trials[1].Failed = "nobody answered"
	r.Sum()
	got := r.Missed()
	if len(got) != 4 || !strings.HasSuffix(got[3], "not measured: nobody answered, and it is required") {
		t.Errorf("a trial that failed: %q", got)
	}
}

// A run that is too short misses nothing but what no length excuses.
func TestHasty(t *testing.T) {
	t.Parallel()
	r := sample()
	r.Settings.Hasty = true
	r.Sides[5].Rounds[0].P99, r.Sides[5].Rounds[1].P99 = 1000, 1000
	r.Trials[0].Over = 1
	r.Sum()
	want := []string{"Quorlease from escrow, killed: tokens over-admitted: 1 is not 0"}
	if diff := cmp.Diff(want, r.Missed()); diff != "" {
		t.Errorf("missed (-want +got):\n%s", diff)
	}
}

// TestAllowed: a bucket may give its burst, and what came in the time.
func TestAllowed(t *testing.T) {
	t.Parallel()
	if got := (&Trial{Burst: 1000, PerSecond: 40, Seconds: 2.49}).Allowed(); got != 1099 {
		t.Errorf("%d, want 1000 + 99", got)
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

// Every field, and every slug of a figure, is in the reference.
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
	documented := map[string]bool{}
	for _, code := range regexp.MustCompile("`[^`]*`").FindAllString(string(text), -1) {
		for _, word := range regexp.MustCompile(`[A-Za-z0-9_-]+`).FindAllString(code, -1) {
			documented[word] = true
		}
	}
	for _, field := range regexp.MustCompile(`"([a-z0-9_]+)":`).FindAllStringSubmatch(out.String(), -1) {
		if !documented[field[1]] {
			t.Errorf("field %q is not in docs/reference/bench.md", field[1])
		}
	}
	for _, f := range figures {
		if !documented[f.slug] || !documented[f.of] || f.beside != "" && !documented[f.beside] {
			t.Errorf("figure %s of %s beside %q is not in docs/reference/bench.md", f.slug, f.of, f.beside)
		}
	}
}
