package failopen

import (
	"cmp"
	"slices"
	"time"

	"github.com/quorlease/quorlease/fsm/bucket"
)

// Promise is what the authority keeps for this client of one limit in mode Share.
type Promise struct {
	Limit string
	// Version is higher with each promise of a limit to a session. 0 is no promise.
	Version uint64
	// SharePPM is 0 to WholePPM parts per million. 0 is none (T52).
	SharePPM int64
	// ValidFor is for how long after it was asked for a client that is cut off may begin
	// to use it, and Hold for how long it may use it.
	ValidFor, Hold time.Duration
}

// kept is a promise as the machine has it.
type kept struct {
	version uint64
	// begin is until when somebody who is cut off may begin to use it, end until when he
	// may use it.
	begin, end bucket.Instant
}

// lasts says whether the authority keeps the share for who was cut off at started, at a
// later time. A share that nobody keeps a book of lasts: nothing is known of it.
func (r *rule) lasts(started, at bucket.Instant) bool {
	return !r.booked || started <= r.kept.begin && at < r.kept.end
}

// Held are the limits in mode Share that the authority has spoken of, by name, each with
// the version of the promise that counts here: none before it is used any more.
func (m *Machine) Held() []Promise {
	m.mu.Lock()
	defer m.mu.Unlock()
	var held []Promise
	for limit, r := range m.mu.rules {
		if r.booked {
			held = append(held, Promise{Limit: limit, Version: r.kept.version, SharePPM: r.share})
		}
	}
	slices.SortFunc(held, func(a, b Promise) int { return cmp.Compare(a.Limit, b.Limit) })
	return held
}

// Promised takes in what the authority promises, which was asked for at sent. What is
// older than what counts is left out. changed says that some version is new: the
// authority waits to hear of it.
func (m *Machine) Promised(sent time.Time, promises []Promise) (changed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := bucket.Instant(m.sinceLocked(sent))
	for _, p := range promises {
		r := m.mu.rules[p.Limit]
		if r == nil || !r.booked || p.Version == 0 || p.Version < r.kept.version {
			continue
		}
		next := kept{p.Version, at + less(p.ValidFor), at + less(p.Hold)}
		if p.Version == r.kept.version {
			next.begin, next.end = max(next.begin, r.kept.begin), max(next.end, r.kept.end)
		}
		changed = changed || p.Version != r.kept.version
		if p.SharePPM != r.share {
			fresh, err := compile(r.Fallback, min(max(0, p.SharePPM), WholePPM))
			if err != nil {
				// It was compiled before, with another share: this one has no arithmetic.
				continue
			}
			fresh.learnt, fresh.booked, fresh.revision, fresh.since = true, true, r.revision, at
			r = fresh
			m.mu.rules[r.Limit] = r
		}
		r.kept = next
	}
	return changed
}

// less is a life less what two clocks may differ by.
func less(d time.Duration) bucket.Instant { return bucket.Instant(d - d/1000) }

// Overslept ends promises sooner by as long as the machine was suspended, which the times
// that are passed here may not tell of (T5).
func (m *Machine) Overslept(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.mu.rules {
		r.kept.begin -= bucket.Instant(d)
		r.kept.end -= bucket.Instant(d)
	}
}

// Forgo gives up every share that was promised, and returns what was held: from now on
// the authority may give it to others.
func (m *Machine) Forgo() []Promise {
	held := m.Held()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range held {
		r := m.mu.rules[p.Limit]
		if none, err := compile(r.Fallback, 0); err == nil {
			none.learnt, none.booked, none.revision = true, true, r.revision
			m.mu.rules[p.Limit] = none
		}
	}
	return held
}
