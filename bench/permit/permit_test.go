package permit

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/quorlease/quorlease/bench/bound"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestRun: every figure is there; what is too short is held to nothing.
func TestRun(t *testing.T) {
	c := Default()
	c.Quick()
	r, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Rounds) != 1 || len(r.Bounds) != 4 {
		t.Fatalf("%+v", r)
	}
	for i := range r.Bounds {
		b := &r.Bounds[i]
		if b.Got == nil || !b.OK || b.Verdict() != "" || b.Bound != "permit-allocs" && b.Got.Median <= 0 {
			t.Errorf("%+v", b)
		}
	}
}

// TestJudge: ratios are made within a round, and one allocation is one too many.
func TestJudge(t *testing.T) {
	t.Parallel()
	one := Round{Alone: 50, AloneRate: 100, Together: 60, TogetherRate: 100, FailOpen: 2000}
	slow := Round{Alone: 90, AloneRate: 60, Together: 60, TogetherRate: 100, FailOpen: 2000, Allocs: 1}
	r := &Result{Rounds: []Round{one, slow, one}}
	r.judge()
	for i, want := range []string{bound.Kept, bound.Missed, bound.Kept, bound.Kept} {
		if got := r.Bounds[i].Verdict(); got != want {
			t.Errorf("%+v: %s, want %s", r.Bounds[i], got, want)
		}
	}
	if got := r.Bounds[0].Got; got.Median != 0.5 || got.Max != 1.5 {
		t.Errorf("%+v, want those of the rounds", got)
	}
}
