// Package warn says once when a client is on its way to lose its retry budget,
// once when it has lost it, and once when each of it is over.
//
// Every node watches its own replica, and says what it sees in its own events.
// Nothing is handed over when the leader changes, and a reader of one node hears
// of each crossing once.
//
// What is *not* here: which clients to look at, how often, and where it is said.
// The package is pure: no clock, no lock, no goroutine.
package warn

import (
	"fmt"
	"time"

	"github.com/quorlease/quorlease/fsm/bucket"
)

// Calm is for how long a client has to be below before it is over: one that
// hovers is one incident, not hundreds.
const Calm = 10 * time.Second

// Standing is how one client stands now.
type Standing struct {
	Client string
	// Retries of Total requests in the Window were retries.
	Total, Retries int64
	Window         time.Duration
	// Above: they are more than WarnFraction, in hundredths of a percent, of which
	// is warned after WarnFor.
	Above        bool
	WarnFraction int64
	WarnFor      time.Duration
	// Over: the budget refuses, or would where it is not enforced.
	Over     bool
	Enforced bool
	// Error is the commonest one that was reported. It may be empty.
	Error string
	// Now is the authority time of the look.
	Now bucket.Instant
	// slides is how long it takes until the window drops counts.
	slides time.Duration
	// counts: there are enough requests for the fraction to count. silent: the
	// client is in the figures, and nobody is told of it.
	counts, silent bool
}

// Kind says what begins or ends.
type Kind int

// The kinds.
const (
	// Warning: above the fraction that warns, for as long as that takes.
	Warning Kind = iota + 1
	// Over: the budget is spent.
	Over
)

// Change is a beginning or an end.
type Change struct {
	Kind Kind
	// Ended: it is over.
	Ended bool
	Standing
}

// Watch remembers who was above, and since when. The zero Watch has seen nobody.
type Watch struct {
	clients map[string]*watched
}

// watched is a client that is above or over, or was within Calm.
type watched struct {
	warning, over crossing
	// last is how the client stood when it was seen above last, with the budget that
	// it had then.
	last Standing
}

// crossing is one line and how long it has been crossed.
type crossing struct {
	// since is when it was crossed, if above; else when the client fell below it.
	since time.Duration
	above bool
	said  bool
}

// blurMost is how exactly a time above is known, at most. Its beginning and its end
// are seen when they have committed, each a little later than it was, and not
// equally much.
const blurMost = 100 * time.Millisecond

// blur is how much less than after may be seen of a client that was above for as
// long as that.
func blur(after time.Duration) time.Duration { return min(blurMost, after/100) }

// see takes a look and says whether something begins or ends. Whoever falls below
// when it may have been above for long enough has been: where a node can't tell,
// it says so.
func (c *crossing) see(at time.Duration, above bool, after time.Duration) (begins, ends bool) {
	if above != c.above {
		begins = !above && !c.said && at-c.since >= after-blur(after)
		c.said = c.said || begins
		c.above, c.since = above, at
		if begins {
			return begins, false
		}
	}
	switch {
	case above && !c.said && at-c.since >= after:
		c.said = true
		return true, false
	case !above && c.said && at-c.since >= Calm:
		c.said = false
		return false, true
	}
	return false, false
}

// idle says that forgetting the crossing would change nothing.
func (c *crossing) idle() bool { return !c.above && !c.said }

// See takes a look at one client and returns what has changed, at most one of
// each kind. at is a steady clock. A client that no look has seen above or over
// takes no memory.
func (w *Watch) See(at time.Duration, s Standing) []Change {
	if s.silent {
		s.Above, s.Over = false, false
	}
	one := w.clients[s.Client]
	if one == nil {
		if !s.Above && !s.Over {
			return nil
		}
		one = &watched{}
		if w.clients == nil {
			w.clients = make(map[string]*watched)
		}
		w.clients[s.Client] = one
	}
	var changes []Change
	if begins, ends := one.over.see(at, s.Over, 0); begins || ends {
		changes = append(changes, Change{Over, ends, s})
	}
	if s.Above {
		one.last = s
	}
	switch begins, ends := one.warning.see(at, s.Above, one.last.WarnFor); {
	case begins:
		changes = append(changes, Change{Warning, false, one.last})
	case ends:
		changes = append(changes, Change{Warning, true, s})
	}
	if one.warning.idle() && one.over.idle() {
		delete(w.clients, s.Client)
	}
	return changes
}

// Due is when a client will have been above for long enough, if it stays there.
// ok is false where that is said, or the client is not above.
func (w *Watch) Due(s Standing) (at time.Duration, ok bool) {
	one := w.clients[s.Client]
	if one == nil || !one.warning.above || one.warning.said {
		return 0, false
	}
	return one.warning.since + s.WarnFor, true
}

// Watches says whether a client has to be looked at again although it does
// nothing: something of it is not over.
func (w *Watch) Watches(client string) bool { return w.clients[client] != nil }

// Len is how many clients are watched.
func (w *Watch) Len() int { return len(w.clients) }

// Bout numbers the incidents of a client by their beginning, so that nodes that see
// the same one have the same number, unless they see it on different sides of a
// border. The next one begins at least Calm later, and has another.
func (c *Change) Bout() int64 { return int64(c.Now)/int64(Calm) + 1 }

// Fraction is which part of the requests were retries, as people write it.
func (s *Standing) Fraction() string {
	if s.Total <= 0 {
		return "0%"
	}
	// In hundredths of a percent; the counts of a window are far below 2^63 / 10^4.
	return percent(s.Retries * 10_000 / s.Total)
}

// percent writes hundredths of a percent, without zeros at the end.
func percent(hundredths int64) string {
	whole, part := hundredths/100, hundredths%100
	switch {
	case part == 0:
		return fmt.Sprintf("%d%%", whole)
	case part%10 == 0:
		return fmt.Sprintf("%d.%d%%", whole, part/10)
	default:
		return fmt.Sprintf("%d.%02d%%", whole, part)
	}
}

// Text is the change as a sentence for people: who, how much, over which time,
// and why.
func (c *Change) Text() string {
	text := fmt.Sprintf("%s retry fraction %s", c.Client, c.Fraction())
	of := fmt.Sprintf("%d of %d requests in %s", c.Retries, c.Total, span(c.Window))
	switch {
	case c.Kind == Warning && c.Ended:
		text += fmt.Sprintf(", no longer above %s: %s", percent(c.WarnFraction), of)
	case c.Kind == Warning:
		text += fmt.Sprintf(", above %s for %s: %s", percent(c.WarnFraction), span(c.WarnFor), of)
	case c.Ended:
		text += ", within its retry budget again: " + of
	case c.Enforced:
		text += ", its retry budget is spent and refuses it: " + of
	default:
		text += ", its retry budget is spent and would refuse it: " + of
	}
	if c.Error != "" && !c.Ended {
		text += "; commonest error: " + c.Error
	}
	return text
}

// span writes a time without units that are zero.
func span(d time.Duration) string {
	if d >= time.Minute && d%time.Minute == 0 {
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return d.String()
}
