package storm

import (
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/bench/storm/authority"
	"github.com/quorlease/quorlease/cluster/warn"
)

const (
	// alertFirsts are the first attempts of the minute before anything goes wrong.
	// alertRetries of them are a hair above a tenth, and alertRelief more first
	// attempts bring them below it again.
	alertFirsts  = 900
	alertRetries = 101
	alertRelief  = 20
	// overRetries are the fewest that are above a fifth.
	overRetries = 226
	alertStart  = time.Minute
)

// alarmed is a client whose retries are watched.
type alarmed struct {
	world
	cluster *authority.Authority
	next    int
	// warned and over are when one node said so, counted from alertStart.
	warned, over []time.Duration
	// strangers counts what was said of anybody else.
	strangers int
}

func newAlarmed(seed uint64) *alarmed {
	w := newWorld(seed)
	a := &alarmed{
		world:   w,
		cluster: authority.New(w.Stage, 3, &logv1.ApplyLimits{RetryBudgets: []*logv1.RetryBudget{authority.Budget()}}),
	}
	a.cluster.OnChange = func(node int, c warn.Change) {
		since := w.Real() - alertStart
		switch {
		case node != 0 || c.Ended:
		case c.Client != batchClient:
			a.strangers++
		case c.Kind == warn.Warning:
			a.warned = append(a.warned, since)
		default:
			a.over = append(a.over, since)
		}
	}
	w.even(alertFirsts, alertStart, func() { a.ask(0) })
	// Somebody else, who retries a little.
	w.even(60, 5*time.Minute, func() { a.cluster.Admit(0, "evaluation", 0) })
	w.even(3, 5*time.Minute, func() { a.cluster.Admit(1, "evaluation", 1) })
	return a
}

// ask asks the nodes in turn.
func (a *alarmed) ask(attempt uint32) bool {
	a.next++
	return a.cluster.Admit(a.next, batchClient, attempt) == nil
}

// above keeps the client above a tenth for so long, and counts the warnings.
func above(seed uint64, length time.Duration) *alarmed {
	a := newAlarmed(seed)
	a.At(nil, alertStart, func() {
		for range alertRetries {
			a.ask(1)
		}
	})
	a.At(nil, alertStart+length, func() {
		for range alertRelief {
			a.ask(0)
		}
	})
	a.until(alertStart + length + 10*time.Second)
	return a
}

func alerts(seed uint64, o *Outcome) {
	short := above(seed, 90*time.Second)
	almost := above(seed, 119*time.Second)
	long := above(seed, 120*time.Second)
	o.exactly(AlertsShort, len(short.warned), 0)
	o.exactly(AlertsAlmost, len(almost.warned), 0)
	o.exactly(AlertsLong, len(long.warned), 1)
	after := time.Duration(0)
	if len(long.warned) > 0 {
		after = long.warned[0]
	}
	o.within(AlertAfter, after.Seconds(), 120, 120.1)
	o.exactly(AlertsOthers, short.strangers+almost.strangers+long.strangers, 0)

	// A client that retries more than a fifth, at once.
	a := newAlarmed(seed)
	admitted, crossed := 0, time.Duration(0)
	var retry func()
	retry = func() {
		if a.ask(1) {
			if admitted++; admitted == overRetries {
				crossed = a.Real() - alertStart
			}
		}
		a.At(nil, 10*time.Millisecond, retry)
	}
	a.At(nil, alertStart, retry)
	a.until(alertStart + 30*time.Second)
	red := time.Hour
	if len(a.over) == 1 {
		red = a.over[0] - crossed
	}
	o.within(RedAfter, red.Seconds(), 0, 1)
}
