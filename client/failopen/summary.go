package failopen

import (
	"cmp"
	"slices"
	"time"

	"github.com/quorlease/quorlease/fsm/bucket"
)

// incident is one time of being away, from Started to Ended.
type incident struct {
	number         uint64
	started, ended time.Time
	// startedAt is started since the origin.
	startedAt         bucket.Instant
	cause             Signal
	admitted, refused int64
}

func (i *incident) count(admitted bool) {
	if admitted {
		i.admitted++
	} else {
		i.refused++
	}
}

// Summary is one incident: what an alert says, and what is published while it
// lasts.
type Summary struct {
	// Number counts incidents from 1; 0 is that there was none yet.
	Number uint64
	// Started and Ended are the times of the observations. Ended is zero while it
	// lasts.
	Started, Ended time.Time
	// Cause is the observation that was one too many.
	Cause Signal
	// Admitted and Refused are requests that were decided locally in it.
	Admitted, Refused int64
	// Spent are the tokens, by limit and dimension, sorted. It has the limits that
	// something was admitted of.
	Spent []Spent
}

// Spent is what was admitted of one dimension of a limit in one incident, beside
// the most that can have been.
type Spent struct {
	Limit, Dimension string
	Mode             Mode
	// Tokens that this client has admitted, over all keys.
	Tokens int64
	// Bounded is false where nothing bounds first attempts (Open, or a mode that
	// was Open for a part of the time), or the authority kept the share no longer, so that
	// others may have it too; then the next two are 0.
	Bounded bool
	// Worst is the most that this client can have admitted, of Keys keys: its
	// share × (burst + rate × time away) for each.
	Worst int64
	// Fleet is the most that all clients together can have admitted of those keys,
	// as long as their shares sum to no more than the limit: burst + rate × time
	// away for each. Where only some are cut off the authority grants beside
	// them, at most as much again.
	Fleet int64
	// Keys is how many keys were admitted at least once; those that found no place
	// count as one.
	Keys int64
}

// Total is what was admitted locally of one dimension of a limit since the
// Machine was made.
type Total struct {
	Limit, Dimension string
	Tokens           int64
}

// Summary is the incident that lasts at now, or else the last one.
func (m *Machine) Summary(now time.Time) Summary {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := &m.mu.incident
	s := Summary{
		Number: i.number, Started: i.started, Ended: i.ended, Cause: i.cause, Admitted: i.admitted, Refused: i.refused,
	}
	if i.number == 0 {
		return s
	}
	until := now
	if !i.ended.IsZero() {
		until = i.ended
	}
	for _, t := range m.mu.accounts.tallies {
		if t.incident == i.number {
			s.Spent = append(s.Spent, t.worst(m.ruleLocked(t.limit), until.Sub(i.started)))
		}
	}
	if rest := &m.mu.accounts.rest; rest.incident == i.number {
		s.Spent = append(s.Spent, rest.worst(m.mu.standard, until.Sub(i.started)))
	}
	slices.SortFunc(s.Spent, func(x, y Spent) int {
		return cmp.Or(cmp.Compare(x.Limit, y.Limit), cmp.Compare(x.Dimension, y.Dimension))
	})
	return s
}

// worst is the tally of one incident that lasted for d.
func (t *tally) worst(r *rule, d time.Duration) Spent {
	s := Spent{Limit: t.limit, Dimension: t.dimension, Mode: r.Mode, Tokens: t.spent, Keys: t.keys}
	p := r.pace(t.dimension)
	if r.Mode != Share || p == nil || p.shape == nil {
		return s
	}
	s.Worst = mulDiv(add(p.shape.Burst(), p.shape.TokensIn(d)), t.keys, 1)
	s.Fleet = mulDiv(add(p.Burst, mulDiv(p.Amount, max(0, int64(d)), int64(p.Interval))), t.keys, 1)
	// A rule that came in the middle may have admitted more before.
	s.Bounded = t.spent <= s.Worst && !t.lapsed
	if !s.Bounded {
		s.Worst, s.Fleet = 0, 0
	}
	return s
}

// Totals are what was admitted locally since the Machine was made, sorted by
// limit and dimension. The limits that found no place are one with no name.
func (m *Machine) Totals() []Total {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := make([]Total, 0, len(m.mu.accounts.tallies))
	for _, t := range m.mu.accounts.tallies {
		if t.tokens > 0 {
			found = append(found, Total{t.limit, t.dimension, t.tokens})
		}
	}
	if rest := &m.mu.accounts.rest; rest.tokens > 0 {
		found = append(found, Total{Tokens: rest.tokens})
	}
	slices.SortFunc(found, func(x, y Total) int {
		return cmp.Or(cmp.Compare(x.Limit, y.Limit), cmp.Compare(x.Dimension, y.Dimension))
	})
	return found
}
