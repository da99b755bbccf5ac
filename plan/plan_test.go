package plan_test

import (
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quorlease/quorlease/plan"
)

// nightly is the account of the nightly backfill.
func nightly() plan.Question {
	perMinute := func(n int64) plan.Rate { return plan.Rate{Amount: n, Interval: time.Minute} }
	return plan.Question{
		Dimensions: []plan.Dimension{
			{Name: "requests", Rate: perMinute(1000), Burst: 10, Cost: 1},
			{Name: "input_tokens", Rate: perMinute(400_000), Burst: 25_000, Cost: 2500},
			{Name: "output_tokens", Rate: perMinute(80_000), Burst: 3000, Cost: 300},
		},
		Target: 7500, Live: perMinute(72), Tasks: 6000, Clients: 200,
	}
}

func answerOf(t *testing.T, q plan.Question) *plan.Answer {
	t.Helper()
	a, err := plan.Reckon(q)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// is compares with a fraction like "800/3".
func is(t *testing.T, what string, got *big.Rat, want string) {
	t.Helper()
	wanted, ok := new(big.Rat).SetString(want)
	if !ok {
		t.Fatal(want)
	}
	if got == nil || got.Cmp(wanted) != 0 {
		t.Errorf("%s: %v, want %s", what, got, want)
	}
}

func TestTheNightlyBackfill(t *testing.T) {
	t.Parallel()
	a := answerOf(t, nightly())
	t.Run("S3-04", func(t *testing.T) {
		is(t, "tasks by requests", a.Parts[0].Tasks, "1000")
		is(t, "tasks by input", a.Parts[1].Tasks, "160")
		is(t, "tasks by output", a.Parts[2].Tasks, "800/3")
		if got := a.Parts[a.Binding].Name; got != "input_tokens" {
			t.Errorf("%s binds, want input_tokens", got)
		}
	})
	t.Run("S3-06", func(t *testing.T) {
		is(t, "headroom", a.Headroom, "88")
		is(t, "live part of the input", a.Parts[1].Live, "45/100")
		is(t, "live part of the output", a.Parts[2].Live, "27/100")
	})
	t.Run("S3-35", func(t *testing.T) {
		is(t, "backfill a minute", a.Paces[0].Backfill, "48")
		is(t, "seconds", a.Paces[0].ETA, "7500")
		is(t, "backfill without a margin", a.Paces[1].Backfill, "88")
		is(t, "seconds without a margin", a.Paces[1].ETA, "45000/11")
	})
	t.Run("S3-34", func(t *testing.T) {
		is(t, "worst minute of the input", a.Parts[1].Worst, "8125/10000")
	})
	t.Run("S3-14", func(t *testing.T) {
		is(t, "window that chance needs", a.Jitter, "1500/11")
		for _, s := range a.Spreads[:3] {
			if s.Fits {
				t.Errorf("%v s are said to fit", s.Window)
			}
		}
		if last := a.Spreads[3]; !last.Fits || last.Window.Cmp(a.Jitter) != 0 {
			t.Errorf("the last window is %v, fits %v", last.Window, last.Fits)
		}
	})
	t.Run("S3-26", func(t *testing.T) {
		is(t, "a second over 2 s", a.Spreads[0].PerSecond, "100")
		is(t, "a second over 8 s", a.Spreads[1].PerSecond, "25")
		is(t, "a second over 60 s", a.Spreads[2].PerSecond, "10/3")
		is(t, "a second over all of it", a.Spreads[3].PerSecond, "88/60")
	})
}

// A quarter stays free until somebody has measured the estimates; then as much as
// they are off.
func TestMargin(t *testing.T) {
	t.Parallel()
	t.Run("S3-36", func(t *testing.T) {
		q := nightly()
		q.Target = 10_000
		a := answerOf(t, q)
		if a.Margin != 2500 || a.Measured {
			t.Errorf("unmeasured: margin %d, measured %v, want 2500 and false", a.Margin, a.Measured)
		}
		if s := a.Paces[1]; !s.Suggested || s.File || s.Target != 7500 {
			t.Errorf("the second pace is %+v, want the suggested one of 7500", s)
		}
		off := int64(800)
		q.ErrorP99 = &off
		a = answerOf(t, q)
		if a.Margin != 800 || !a.Measured {
			t.Errorf("measured: margin %d, measured %v, want 800 and true", a.Margin, a.Measured)
		}
		is(t, "pace at 92 %", a.Paces[1].Tasks, "1472/10")
		off = 4000
		if a = answerOf(t, q); a.Margin != 4000 {
			t.Errorf("a larger error gives a margin of %d, want 4000", a.Margin)
		}
	})
}

func TestWhatIf(t *testing.T) {
	t.Parallel()
	a := answerOf(t, plan.Question{
		Dimensions: []plan.Dimension{{
			Name: "input_tokens", Rate: plan.Rate{Amount: 400_000, Interval: time.Minute}, Burst: 25_000, Cost: 2500,
		}},
		Target: 7500, Arrivals: 25, Capacities: []int64{10, 15, 20, 25},
		Rates: []plan.Rate{{Amount: 2, Interval: time.Second}},
	})
	rows := map[int64]plan.Cell{}
	for _, c := range a.WhatIf[1:] {
		is(t, "rate", c.Rate, "120")
		rows[c.Capacity] = c
	}
	check := func(t *testing.T, c plan.Cell, admitted, held int64, after ...int64) {
		t.Helper()
		if c.Admitted != admitted || c.Held != held {
			t.Errorf("capacity %d admits %d and holds %d, want %d and %d", c.Capacity, c.Admitted, c.Held, admitted, held)
		}
		if diff := cmp.Diff(after, c.After); diff != "" {
			t.Errorf("held after each second (-want +got):\n%s", diff)
		}
	}
	t.Run("S3-19", func(t *testing.T) {
		check(t, rows[10], 10, 15, 13, 11, 9, 7, 5, 3, 1, 0)
		is(t, "none waits after", rows[10].Empty, "15/2")
		// The file's own bucket is the same one, counted in tokens.
		check(t, a.WhatIf[0], 10, 15, 13, 11, 9, 7, 5, 3, 1, 0)
		is(t, "none waits after, of the file", a.WhatIf[0].Empty, "15/2")
	})
	t.Run("S3-20", func(t *testing.T) {
		check(t, rows[25], 25, 0)
		is(t, "none waits after", rows[25].Empty, "0")
	})
	t.Run("S3-21", func(t *testing.T) {
		check(t, rows[15], 15, 10, 8, 6, 4, 2, 0)
		check(t, rows[20], 20, 5, 3, 1, 0)
	})
	t.Run("unasked", func(t *testing.T) {
		q := nightly()
		q.Arrivals = 25
		var sizes []int64
		for _, c := range answerOf(t, q).WhatIf {
			sizes = append(sizes, c.Capacity)
		}
		if diff := cmp.Diff([]int64{10, 10, 15, 15, 20, 20, 25, 25}, sizes); diff != "" {
			t.Errorf("capacities (-want +got):\n%s", diff)
		}
	})
}

// What leaves nothing is never, and no division by it.
func TestNever(t *testing.T) {
	t.Parallel()
	q := nightly()
	q.Live.Amount = 160
	q.Arrivals = 25
	a := answerOf(t, q)
	is(t, "headroom", a.Headroom, "0")
	if a.Jitter != nil || a.Paces[0].ETA != nil || a.Paces[1].ETA != nil {
		t.Errorf("jitter %v, ETA %v and %v, want never", a.Jitter, a.Paces[0].ETA, a.Paces[1].ETA)
	}
	q.Dimensions[1].Rate.Amount = 0
	a = answerOf(t, q)
	is(t, "headroom of none", a.Headroom, "-160")
	if p := a.Parts[1]; p.Live != nil || p.Worst != nil {
		t.Errorf("live work is %v and a burst %v of no limit", p.Live, p.Worst)
	}
	q.Live.Amount, q.Dimensions[1].Burst = 0, 0
	p := answerOf(t, q).Parts[1]
	is(t, "nothing of no limit", p.Live, "0")
	is(t, "no burst of no limit", p.Worst, "0")
	row := a.WhatIf[0]
	if row.Empty != nil || row.Held != 15 || len(row.After) != plan.SecondsMax || row.After[59] != 15 {
		t.Errorf("a bucket that is not refilled: %+v", row)
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change func(*plan.Question)
		want   string
	}{
		"nothing":   {func(q *plan.Question) { q.Dimensions = nil }, "cost: names no dimension"},
		"free":      {func(q *plan.Question) { q.Dimensions[0].Cost = 0 }, "cost: 0 is out of range"},
		"too large": {func(q *plan.Question) { q.Dimensions[1].Cost = 25_001 }, "burst: a bucket of 25000 input_tokens"},
		"target":    {func(q *plan.Question) { q.Target = 0 }, "target: 0 is out of range"},
		"tasks":     {func(q *plan.Question) { q.Tasks = -1 }, "tasks: -1 is out of range"},
		"clients":   {func(q *plan.Question) { q.Clients = 2_000_000_000 }, "clients: 2000000000 is out of range"},
		"error":     {func(q *plan.Question) { n := int64(10_000); q.ErrorP99 = &n }, "error: 10000 is out of range"},
		"capacity":  {func(q *plan.Question) { q.Capacities = []int64{0} }, "capacities: 0 is out of range"},
		"rows": {func(q *plan.Question) {
			q.Rates = make([]plan.Rate, 100)
			q.Capacities = []int64{1, 2, 3}
		}, "capacities: 300 rows"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := nightly()
			q.Arrivals = 25
			row.change(&q)
			_, err := plan.Reckon(q)
			var problem *plan.QuestionError
			if !errors.As(err, &problem) || !strings.HasPrefix(err.Error(), row.want) {
				t.Errorf("%v, want %s", err, row.want)
			}
		})
	}
}
