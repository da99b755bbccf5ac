package told

import (
	"maps"
	"strings"
	"sync/atomic"
	"time"

	"github.com/quorlease/quorlease/client/feedback"
	"github.com/quorlease/quorlease/client/gateway/circuit"
	"github.com/quorlease/quorlease/client/gateway/provider"
)

const (
	// incidentsMax is how many spend caps are known at once. The one that was heard of
	// longest ago makes room; it would be a new one.
	incidentsMax = 1024
	// tenantsMax is how many tenants of one are known.
	tenantsMax = 1024
	// quietMin is how long nobody has to be told of a spend cap that the authority does not
	// keep, until an answer means that it is over: what was sent before may still succeed.
	quietMin = 10 * time.Minute
	// plenty is more than any bucket has: to say that so much is left changes nothing, and
	// the answer says for how long the key is paused, and whether it is blocked.
	plenty = 1 << 53
)

// cause is what makes two spend caps one incident.
type cause struct{ deployment, reason string }

// incident is a spend cap that is not cleared.
type incident struct {
	SpendCap
	// subject is who at the authority hears of it, and answer what is said to it.
	subject string
	answer  feedback.Answer
	tenants map[string]struct{}
	// settled: what the authority makes of it is known, or that it does not answer. told:
	// somebody was called.
	settled, told bool
	// last is when it was heard of last, resumes when it ends by itself, and check when the
	// authority is asked whether it still blocks it. 0: never.
	last, resumes, check time.Duration
}

// incidents are all that are not cleared, and what is to be said of them. The Teller's lock
// guards it, but for open.
type incidents struct {
	byCause     map[cause]*incident
	began, over []SpendCap
	// open is how many there are, for whoever need not know more than that there are none.
	open *atomic.Int64
}

func newIncidents() incidents {
	return incidents{byCause: make(map[cause]*incident), open: new(atomic.Int64)}
}

func (l *incidents) len() int { return len(l.byCause) }

// at is the incident of a cause, a new one where there is none.
func (l *incidents) at(c cause) *incident {
	if known := l.byCause[c]; known != nil {
		return known
	}
	if len(l.byCause) >= incidentsMax {
		var first *incident
		for _, one := range l.byCause {
			if first == nil || one.last < first.last {
				first = one
			}
		}
		l.end(first)
	}
	one := &incident{tenants: make(map[string]struct{})}
	one.Deployment, one.Reason = strings.Clone(c.deployment), c.reason
	l.byCause[cause{one.Deployment, one.Reason}] = one
	l.open.Add(1)
	return one
}

func (l *incidents) remove(one *incident) {
	delete(l.byCause, cause{one.Deployment, one.Reason})
	l.open.Add(-1)
}

// begin notes that somebody has to be called, once.
func (l *incidents) begin(one *incident) {
	if !one.told {
		one.told = true
		l.began = append(l.began, one.SpendCap)
	}
}

// end notes that one is over, after it has begun.
func (l *incidents) end(one *incident) {
	l.begin(one)
	l.remove(one)
	l.over = append(l.over, one.SpendCap)
}

// heard takes in what the authority answered to something about the same subject. check is
// when to ask again.
func (l *incidents) heard(check time.Duration, e *entry, c feedback.Controlled) {
	for _, one := range l.byCause {
		switch {
		case one.subject != e.place.subject:
		case e.rank == money:
			one.settled = true
			if c.Blocked {
				one.Blocked, one.check = true, check
			}
		case one.Blocked && c.Blocked:
			one.check = check
		case one.Blocked:
			l.end(one)
		}
	}
}

// unheard takes in that the authority was told of an answer and has not taken it.
func (l *incidents) unheard(e *entry) {
	for _, one := range l.byCause {
		if e.rank == money && one.subject == e.place.subject {
			one.settled = true
		}
	}
}

// next is when there is something to do.
func (l *incidents) next() time.Duration {
	at := never
	for _, one := range l.byCause {
		if one.Blocked {
			at = min(at, one.check)
		} else if one.resumes > 0 {
			at = min(at, one.resumes)
		}
	}
	return at
}

// news are those that somebody has to be told of: what began and what is over.
func (l *incidents) news(now time.Duration, last bool) (began, over []SpendCap) {
	for _, one := range l.byCause {
		if one.settled || last {
			l.begin(one)
		}
		if !one.Blocked && one.resumes > 0 && now >= one.resumes {
			l.end(one)
		}
	}
	began, over = l.began, l.over
	l.began, l.over = nil, nil
	return began, over
}

// capped takes in that money is used up.
func (t *Teller) capped(now time.Duration, about About, v *provider.Verdict, e *entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.closed {
		return
	}
	one := t.mu.money.at(cause{about.Deployment, e.answer.Reason})
	one.last = now
	if len(one.tenants) < tenantsMax {
		one.tenants[strings.Clone(about.Tenant)] = struct{}{}
	}
	if !v.Resumes.IsZero() {
		one.Resumes = v.Resumes
		one.resumes = now + max(0, v.Resumes.Sub(t.config.Now()))
	}
	waits := t.enqueueLocked(now, e)
	if one.subject == "" {
		one.Tenant, one.Scope = strings.Clone(about.Tenant), v.Scope
		one.subject, one.answer = e.place.subject, e.answer
		one.answer.Attributes = maps.Clone(e.answer.Attributes)
		// Nobody will be told by the authority.
		one.settled = !waits
	}
	t.rouse()
}

// Capped says whether money is used up for that work as far as this gateway was told, and
// the authority does not refuse it by itself: it was not told yet, does not answer, or
// has no limit that hears of it. Nothing is to be sent then (S3-27).
func (t *Teller) Capped(about About) bool {
	if t.mu.money.open.Load() == 0 {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, one := range t.mu.money.byCause {
		if _, is := one.tenants[about.Tenant]; is && one.Deployment == about.Deployment && !one.Blocked {
			return true
		}
	}
	return false
}

// Cleared says that somebody has cleared the spend caps of a deployment, for what the
// authority does not block: that is cleared there. The next one is a new incident. It is false
// where there was none.
func (t *Teller) Cleared(deployment string) bool {
	return t.endIf(func(one *incident) bool { return one.Deployment == deployment && !one.Blocked })
}

// succeeded takes in that a deployment has done work.
func (t *Teller) succeeded(deployment string) {
	if t.mu.money.open.Load() == 0 {
		return
	}
	now := t.now()
	t.endIf(func(one *incident) bool {
		return one.Deployment == deployment && !one.Blocked && now-one.last >= quietMin
	})
}

// endIf ends those that are over, and says whether there were any.
func (t *Teller) endIf(over func(*incident) bool) (ended bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, one := range t.mu.money.byCause {
		if over(one) {
			t.mu.money.end(one)
			t.rouse()
			ended = true
		}
	}
	return ended
}

// recheckLocked asks what of it is still blocked.
func (t *Teller) recheckLocked(now time.Duration) {
	for _, one := range t.mu.money.byCause {
		if one.Blocked && now >= one.check {
			one.check = now + t.config.Recheck
			key := circuit.Key{Tenant: one.Tenant, Deployment: one.Deployment}
			t.enqueueLocked(now, t.question(now, key, one.answer))
		}
	}
}

// announce calls who has to know. last: nothing more will be heard.
func (t *Teller) announce(last bool) {
	t.mu.Lock()
	began, over := t.mu.money.news(t.now(), last)
	t.mu.Unlock()
	for _, one := range began {
		t.config.Logger.Error("a provider has no money left for this", "deployment", one.Deployment,
			"tenant", one.Tenant, "reason", one.Reason, "blocked", one.Blocked)
		t.config.OnSpendCap(one)
	}
	for _, one := range over {
		t.config.Logger.Info("a spend cap is over", "deployment", one.Deployment, "reason", one.Reason)
		t.config.OnCleared(one)
	}
}
