// Package plan reckons what a limit can carry before anything is asked of it: which
// dimension binds, what live work leaves, how long a backlog takes, and what a burst
// does to a bucket.
//
// Everything is exact: whole numbers and fractions of them, which are rounded where
// they are printed and nowhere before. It is what fsm/bucket will count in a cluster,
// and a test compares the two. The package is pure.
package plan

import (
	"fmt"
	"math/big"
	"time"

	"github.com/quorlease/quorlease/fsm/bucket"
)

// MarginUnmeasured is the part of a limit that stays free while nobody has
// measured how wrong the estimates of tasks are, in hundredths of a percent.
const MarginUnmeasured = 2_500

// Bounds of a question.
const (
	// TasksMax bounds tasks and clients.
	TasksMax = 1_000_000_000
	// ErrorMax is the largest error of estimates that leaves something to hand out,
	// in hundredths of a percent.
	ErrorMax = bucket.Whole - 1
)

// Rate is so many an interval. The interval is positive, except of the zero Rate,
// which is none.
type Rate struct {
	Amount   int64
	Interval time.Duration
}

// PerMinute is the rate as a fraction.
func (r Rate) PerMinute() *big.Rat {
	if r.Amount == 0 {
		return new(big.Rat)
	}
	return new(big.Rat).Mul(ratio(r.Amount, 1), ratio(int64(time.Minute), int64(r.Interval)))
}

// Dimension is what a limit allows in one dimension, and what a task takes of it.
type Dimension struct {
	Name string
	// Rate is the provider's, before the target, in tokens.
	Rate Rate
	// Burst is the most tokens in the bucket, and Cost those of one task, at least 1.
	Burst, Cost int64
}

// Question is what somebody wants to know.
type Question struct {
	// Dimensions are those that a task is charged in, at least one.
	Dimensions []Dimension
	// Target is the part of the rates that is handed out, in hundredths of a percent.
	Target int64
	// Live is how many tasks come whatever else happens.
	Live Rate
	// Tasks is the backlog and Clients how many begin at once; 0: not asked.
	Tasks, Clients int64
	// ErrorP99 is by how much the estimates of 99 of 100 tasks are off at most, in
	// hundredths of a percent. Nil: nobody has measured it.
	ErrorP99 *int64
	// Arrivals come in one moment; 0: not asked. Capacities, in tasks, and Rates, of
	// tasks, are what the bucket could be; nil is a choice that fits.
	Arrivals   int64
	Capacities []int64
	Rates      []Rate
}

// Part is what one dimension says. Rates are tasks a minute.
type Part struct {
	Dimension
	// Tasks is what the provider's limit allows and AtTarget what is handed out.
	Tasks, AtTarget *big.Rat
	// Live is the part of the provider's limit that live tasks use, and Worst the
	// part that any minute can see: the rate after target and one burst. Nil: there is
	// some, and the limit is none.
	Live, Worst *big.Rat
}

// Pace is what a target comes to.
type Pace struct {
	// Target is in hundredths of a percent. File says whether it is the file's,
	// Suggested whether it is the one to take.
	Target          int64
	File, Suggested bool
	// Tasks a minute, and what of them is left beside the live ones; less than
	// nothing where those are more.
	Tasks, Backfill *big.Rat
	// ETA is the seconds that the backlog takes. Nil: never, or nothing was asked.
	ETA *big.Rat
}

// Spread is what clients do that draw a moment in a window at random.
type Spread struct {
	// Window is in seconds.
	Window *big.Rat
	// PerSecond is how many of them come in a second, and Fits whether that is no
	// more than the headroom.
	PerSecond *big.Rat
	Fits      bool
}

// Answer is what follows. Rates are tasks a minute.
type Answer struct {
	Parts []Part
	// Binding is the index of the part with the fewest tasks, the first one of
	// several.
	Binding int
	// Live is the rate of live tasks, Headroom what the provider's limit leaves
	// beside it.
	Live, Headroom *big.Rat
	// Paces are the file's target, the suggested one and all of the limit, without
	// those that are the same.
	Paces []Pace
	// Margin is the suggested one, in hundredths of a percent, and Measured whether
	// it follows from a measured error.
	Margin   int64
	Measured bool
	// Jitter is the window in seconds over which the clients would have to spread
	// one attempt each to fit the headroom. Nil: none is wide enough, or nothing was
	// asked. Spreads are some windows, that one last.
	Jitter  *big.Rat
	Spreads []Spread
	// WhatIf is the table over capacity and rate, the file's own row first.
	WhatIf []Cell
}

// QuestionError is what makes a question one without an answer.
type QuestionError struct {
	// Field is what is wrong: "burst", "cost", "arrivals" …
	Field string
	// Dimension is the one that it is about, "" for none.
	Dimension string
	// Text has the value and the bound.
	Text string
}

func (p *QuestionError) Error() string { return p.Field + ": " + p.Text }

func wrong(field, dimension, format string, values ...any) error {
	return &QuestionError{Field: field, Dimension: dimension, Text: fmt.Sprintf(format, values...)}
}

func ratio(a, b int64) *big.Rat { return big.NewRat(a, b) }

func (q *Question) check() error {
	if len(q.Dimensions) == 0 {
		return wrong("cost", "", "names no dimension of the limit")
	}
	if q.Target < 1 || q.Target > bucket.Whole {
		return wrong("target", "", "%d is out of range 1..%d", q.Target, int64(bucket.Whole))
	}
	for _, d := range q.Dimensions {
		switch {
		case d.Cost < 1 || d.Cost > bucket.MaxTokens:
			return wrong("cost", d.Name, "%d is out of range 1..%d", d.Cost, int64(bucket.MaxTokens))
		case d.Rate.Amount > 0 && d.Burst < d.Cost:
			return wrong("burst", d.Name, "a bucket of %d %s never holds a task of %d", d.Burst, d.Name, d.Cost)
		}
	}
	for _, n := range []struct {
		field       string
		value, most int64
	}{{"tasks", q.Tasks, TasksMax}, {"clients", q.Clients, TasksMax}, {"arrivals", q.Arrivals, TasksMax}} {
		if n.value < 0 || n.value > n.most {
			return wrong(n.field, "", "%d is out of range 0..%d", n.value, n.most)
		}
	}
	if e := q.ErrorP99; e != nil && (*e < 0 || *e > ErrorMax) {
		return wrong("error", "", "%d is out of range 0..%d", *e, int64(ErrorMax))
	}
	for _, c := range q.Capacities {
		if c < 1 || c > TasksMax {
			return wrong("capacities", "", "%d is out of range 1..%d", c, int64(TasksMax))
		}
	}
	return nil
}
