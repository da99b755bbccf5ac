package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quorlease/quorlease/bench/stat"
)

// update rewrites the golden files instead of comparing with them.
var update = flag.Bool("update", false, "rewrite golden files")

// sample is a run of two rounds in which one check failed and one bound was
// missed.
func sample() *Result {
	side := func(perSecond, p99 float64, failed int64, micros float64) Side {
		granted := int64(perSecond) / 2
		return Side{
			Granted: granted, Denied: granted, Failed: failed, Local: 7, Escrow: 11, Backlog: 3, Seconds: 1,
			DecisionsPerSecond: perSecond, GrantsPerSecond: perSecond / 2,
			P50: p99 / 3, P99: p99, P999: p99 * 2, Max: p99 * 3, Fairness: 0.987, CPU: &micros,
			Percentiles: []Point{{0, p99 / 10}, {50, p99 / 3}, {99, p99}, {100, p99 * 3}},
			Timeline: Timeline{
				SlotMS: 500, Granted: []int64{granted / 2, granted / 2},
				Denied: []int64{granted, 0}, Failed: []int64{0, failed}, Local: []int64{0, 7},
			},
		}
	}
	echoes := []Side{side(320_000, 1.3, 0, 2.5), side(333_333, 1.2, 0, 2.6)}
	r := &Result{
		Version: "v1.2.3",
		Settings: Settings{
			Path: "client", OnLoss: "open", Callers: 128, Keys: 100, Distribution: "zipf", Loop: "open", OfferedRate: 50_000,
			Arrivals: "poisson", LimitRate: 1000, LimitBurst: 2000, SlackMS: 6000, Rounds: 2, WarmupMS: 1000,
			LengthMS: 1000, Nodes: 3, Processor: 2, Platform: "linux/amd64",
		},
		Rounds: []Round{
			{Quorlease: side(42_000, 6.5, 0, 24), Echo: &echoes[0]},
			{Quorlease: side(40_000, 7.25, 12, 25), Echo: &echoes[1]},
		},
		Failures: map[string]int64{"OUTCOME_UNKNOWN": 2, "NO_LEADER": 10},
		Faults:   []Fault{{AtMS: 500, What: "killed the leader n1"}},
		Checks: []Check{
			{Guarantee: "G1", By: "the log of n2", OK: true, Text: "41000 tokens in 100 buckets"},
			{Guarantee: "G2", By: "the clients' clock", Text: "broken at 1 moments, worst hot/a <requests>: 1 tokens above"},
		},
		Bounds: []Bound{{Flag: "min-ratio", Want: 0.12, Got: 0.126, OK: true}, {Flag: "max-p99", Want: 5, Got: 6.88}},
	}
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

func TestSum(t *testing.T) {
	t.Parallel()
	r := sample()
	if want := (stat.Spread{Median: 41_000, Min: 40_000, Max: 42_000}); r.Quorlease.DecisionsPerSecond != want {
		t.Errorf("decisions a second %+v, want %+v", r.Quorlease.DecisionsPerSecond, want)
	}
	if got := r.Ratio.Max; math.Abs(got-42_000.0/320_000) > 1e-9 {
		t.Errorf("largest ratio %v, want that of the first round", got)
	}
	want := []string{
		"G2 broken, by the clients' clock: broken at 1 moments, worst hot/a <requests>: 1 tokens above",
		"--max-p99 5: got 6.88",
	}
	if diff := cmp.Diff(want, r.Broken()); diff != "" || r.OK {
		t.Errorf("ok %v, broken (-want +got):\n%s", r.OK, diff)
	}
	r.Checks, r.Bounds, r.Rounds[0].Echo, r.Rounds[1].Quorlease.CPU = nil, nil, nil, nil
	r.Echo, r.Ratio = nil, nil
	r.Rounds[1].Echo = nil
	r.Sum()
	if !r.OK || r.Echo != nil || r.Ratio != nil || r.Quorlease.CPU != nil {
		t.Errorf("without checks, echo and processor time: %+v", r)
	}
}

// The page must be whole and must need nothing from anywhere.
func TestPage(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]*Result{"sample": sample(), "nothing happened": {Rounds: []Round{{}}}} {
		var out bytes.Buffer
		if err := r.HTML(&out); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, fetched := range []string{"<script", "http:", "https:", "url(", "@import", "<link", "<img"} {
			if strings.Contains(out.String(), fetched) {
				t.Errorf("%s: the page has %q", name, fetched)
			}
		}
		for _, wrong := range []string{"NaN", "Inf", "ZgotmplZ"} {
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

// Every field is in the reference.
func TestReferenceHasEveryField(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "bench.md"))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := sample().JSON(&out); err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`[a-z0-9_]+`)
	documented := map[string]bool{}
	for _, code := range regexp.MustCompile("`[^`]*`").FindAllString(string(text), -1) {
		for _, word := range named.FindAllString(code, -1) {
			documented[word] = true
		}
	}
	for _, field := range regexp.MustCompile(`"([a-z0-9_]+)":`).FindAllStringSubmatch(out.String(), -1) {
		if !documented[field[1]] {
			t.Errorf("field %q is not in docs/reference/bench.md", field[1])
		}
	}
}

func TestNumber(t *testing.T) {
	t.Parallel()
	for value, want := range map[float64]string{
		0: "0", 0.1234: "0.123", 0.9: "0.9", 1.005: "1", 3.14159: "3.14", 42.42: "42.4", 100: "100",
		999.6: "1,000", 1_234_567: "1,234,567", -1234: "-1,234", 50_000: "50,000",
	} {
		if got := number(value); got != want {
			t.Errorf("number(%v) = %q, want %q", value, got, want)
		}
	}
}
