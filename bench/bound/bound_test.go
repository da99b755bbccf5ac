package bound

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quorlease/quorlease/bench/stat"
)

// TestJudge: a bound is kept or missed by its median, what was not measured is neither
// and says why, and only what is required has to be there.
func TestJudge(t *testing.T) {
	t.Parallel()
	ratio := Bound{Bound: "a-b", Name: "a over b", Least: new(0.75), Aim: new(0.9)}
	late := Bound{Bound: "late", Name: "p99", Unit: "ms", Most: new(2.5)}
	rate := Bound{Bound: "rate", Name: "all", Unit: "/s", Least: new(45_000.0)}
	none := Bound{Bound: "none", Name: "over-admitted", Unit: "tokens", Most: new(0.0)}
	read := Bound{Bound: "read", Name: "to be read"}
	there := ratio
	there.Required = true
	missing := read
	missing.Required = true
	for name, row := range map[string]struct {
		b                          Bound
		got                        *stat.Spread
		why                        string
		read                       bool
		ok                         bool
		must, value, verdict, line string
	}{
		"kept at its end": {
			b: ratio, got: &stat.Spread{Median: 0.75, Min: 0.6, Max: 0.8}, ok: true,
			must: "≥ 0.75 (aim 0.9)", value: "0.75 (0.6 to 0.8)", verdict: Kept,
		},
		"missed, though its best round is not": {
			b: ratio, got: &stat.Spread{Median: 0.74, Min: 0.6, Max: 0.8},
			must: "≥ 0.75 (aim 0.9)", value: "0.74 (0.6 to 0.8)", verdict: Missed,
			line: "a over b: 0.74 (0.6 to 0.8) is not ≥ 0.75 (aim 0.9)",
		},
		"at most": {
			b: late, got: &stat.Spread{Median: 2.51, Min: 2.51, Max: 2.51},
			must: "≤ 2.5 ms", value: "2.51 ms", verdict: Missed, line: "p99: 2.51 ms is not ≤ 2.5 ms",
		},
		"a rate": {
			b: rate, got: &stat.Spread{Median: 50_000, Min: 50_000, Max: 50_000}, ok: true,
			must: "≥ 45,000/s", value: "50,000/s", verdict: Kept,
		},
		"none at all": {
			b: none, got: &stat.Spread{Median: 2, Min: 2, Max: 2},
			must: "0 tokens", value: "2 tokens", verdict: Missed, line: "over-admitted: 2 tokens is not 0 tokens",
		},
		"not measured": {
			b: ratio, why: "b is not there", ok: true,
			must: "≥ 0.75 (aim 0.9)", value: "not measured: b is not there", verdict: NotMeasured,
		},
		"not measured, and required": {
			b: there, why: "b is not there",
			must: "≥ 0.75 (aim 0.9)", value: "not measured: b is not there", verdict: NotThere,
			line: "a over b: not measured: b is not there, and it is required",
		},
		"nobody says why": {
			b: ratio, ok: true, must: "≥ 0.75 (aim 0.9)", value: "not measured: there is no figure",
			verdict: NotMeasured,
		},
		"to be read, and not there": {b: missing, why: "b is not there", ok: true, value: "not measured: b is not there"},
		"too short to bind":         {b: there, got: &stat.Spread{}, read: true, ok: true, value: "0"},
		"to be read":                {b: read, got: &stat.Spread{Median: 3, Min: 3, Max: 3}, ok: true, value: "3"},
	} {
		b := row.b.Judge(row.got, row.why, !row.read)
		if b.OK != row.ok || b.Must() != row.must || b.Value() != row.value || b.Verdict() != row.verdict {
			t.Errorf("%s: %v, %q, %q, %q", name, b.OK, b.Must(), b.Value(), b.Verdict())
		}
		var want []string
		if row.line != "" {
			want = []string{row.line}
		}
		if diff := cmp.Diff(want, Lines([]Bound{b})); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", name, diff)
		}
	}
	term := Term{Name: "bare echo", Unit: "/s", Got: stat.Spread{Median: 7, Min: 6, Max: 8}}
	if got := term.Text() + "; " + term.Median(); got != "bare echo 7/s (6 to 8); bare echo 7/s" {
		t.Error(got)
	}
}
