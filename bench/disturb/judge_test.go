package disturb

import (
	"strings"
	"testing"
	"time"
)

// played is a run as if it had been: ten seconds undisturbed and ten with one kill, in
// which every bucket was asked a hundred times a second and granted in a millisecond.
func played() *run {
	r := &run{config: &Config{}, result: &Result{}, calm: span{0, 10e9}}
	r.phases = []phase{
		{fault: fault{slug: "kills", name: "killed"}, span: span{10e9, 20e9}, times: 1},
		{fault: fault{slug: "cut-leader", name: "cut off"}, why: "not root"},
	}
	for _, s := range []**stream{&r.plenty, &r.short, &r.exact} {
		*s = &stream{limit: "a", keys: keyNames(2), rate: 100, burst: 100, history: newHistory(time.Now())}
		for i := range int64(2000) {
			at := i * 10e6
			(*s).history.note(uint64(i), record{
				intended: at, answered: at + 1e6, ends: at + 2e9, key: uint16(i % 2), outcome: fromEscrow,
			})
		}
	}
	return r
}

// spoilt is one question of the second phase.
func spoilt(change func(r *record)) func(*run) {
	return func(r *run) {
		one := record{intended: 15e9, answered: 15e9 + 1e6, ends: 17e9, outcome: fromEscrow}
		change(&one)
		r.plenty.history.note(0, one)
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		spoil func(r *run)
		want  string
	}{
		"all_is_well":   {func(*run) {}, ""},
		"one_waits":     {spoilt(func(r *record) { r.answered = r.intended + 51e6 }), "killed: longest wait, not short"},
		"one_is_denied": {spoilt(func(r *record) { r.outcome = denied }), "killed: not granted by a node, not short"},
		"one_is_alone":  {spoilt(func(r *record) { r.outcome = alone }), "killed: not granted by a node, not short"},
		"one_fails":     {spoilt(func(r *record) { r.outcome = failed }), "killed: not granted by a node, not short"},
		"many_are_slow": {func(r *run) {
			for i := range int64(100) {
				spoilt(func(one *record) { one.intended += i; one.answered = one.intended + 9e6 })(r)
			}
		}, "killed: p99 over the undisturbed"},
		"the_machine_is_busy": {func(r *run) {
			r.plenty.history.note(0, record{intended: 5e9, answered: 5e9 + 60e6, ends: 7e9, late: 51_000})
		}, "killed: longest wait, not short: not measured: with nothing done the callers themselves were late by 51 ms"},
		"somebody_is_woken": {func(r *run) { r.phases[0].alerts = 1 }, "killed: alerts that clients raised"},
		"a_lease_is_lost":   {func(r *run) { r.lost = 1 }, "leases that were acknowledged and are not in the log"},
		"G2_broken": {func(r *run) {
			r.result.Slacks = []Slack{{Limit: "a", SlackMS: 5000, SeenMS: 5001}}
		}, "a: spent above burst + rate·d"},
		"short_is_long": {func(r *run) {
			r.short.history.note(0, record{intended: 15e9, answered: 17.1e9, outcome: denied})
		}, "killed: longest wait, short"},
		"G1_broken": {func(r *run) { r.note("G1", "a log", false, "a grant too much") }, "G1 broken, by a log"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := played()
			row.spoil(r)
			r.judge()
			missed := strings.Join(r.result.Missed(), "\n")
			if (row.want == "") != (missed == "") || !strings.HasPrefix(missed, row.want) || r.result.OK != (missed == "") {
				t.Errorf("missed %q, want %q", missed, row.want)
			}
		})
	}
}

// TestHistory: what every caller was granted and can have spent, and who was late.
func TestHistory(t *testing.T) {
	t.Parallel()
	r := played()
	h := r.plenty.history
	h.note(1, record{intended: 15e9, answered: 16e9, late: 500, key: 1, outcome: byEntry})
	sum := h.in(span{10e9, 20e9})
	if sum.asked != 1001 || sum.granted != 1001 || sum.escrow != 1000 || sum.longest != time.Second || sum.at != 15e9 {
		t.Errorf("%+v", sum)
	}
	if h.late(span{10e9, 20e9}) != 500*time.Microsecond || h.late(span{0, 10e9}) != 0 {
		t.Error("half a millisecond late at most, in the second span")
	}
	if n := h.tokens(); n != 2001 {
		t.Errorf("%d tokens, want 2001", n)
	}
	// 50 a second of each key, all of them to be spent for 2 s: 100 and one more, of 100.
	if got := h.excess(r.plenty.spec(), 2); got.Tokens != 1 {
		t.Errorf("%+v, want 1 token", got)
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	for _, quick := range []bool{false, true} {
		c := Default()
		if quick {
			c.Quick()
		}
		if err := c.Validate(); err != nil {
			t.Errorf("quick %v: %v", quick, err)
		}
	}
	c := Config{Warmup: -1}
	err := c.Validate()
	for _, field := range []string{
		"callers", "part", "measured", "calm", "kills", "hang", "kill every", "away", "warmup",
	} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}
