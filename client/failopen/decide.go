package failopen

import (
	"time"

	"github.com/quorlease/quorlease/fsm/bucket"
)

// Charge asks for Amount tokens of one dimension of one limit. The caller has
// checked it: an Amount below 1 counts as nothing.
type Charge struct {
	Limit, Key, Dimension string
	Amount                int64
}

// Request is one request for a local decision. Nothing of it is kept.
type Request struct {
	// Client is whose retry budget it is under.
	Client string
	// Class is what the tokens are counted under. The share is the same for all.
	Class string
	// Attempt is how many retries have been made for this piece of work, 0 first.
	Attempt uint32
	// Charges are all paid or none (G3).
	Charges []Charge
}

// Reason says why a request is refused.
type Reason int

// The reasons.
const (
	// Granted is no reason: the request was admitted.
	Granted Reason = iota
	// RetryBudget: too many of the client's requests are retries.
	RetryBudget
	// Attempts: this piece of work was tried too often. Never.
	Attempts
	// Rate: this client's share has not earned enough yet.
	Rate
	// ExceedsShare: more than this client's share of the burst, so not before the
	// authority is back.
	ExceedsShare
	// NoShare: the share is 0, or what it is of is not known.
	NoShare
	// Refused: the limit is closed while nobody answers.
	Refused
)

// String is the reason in lower case.
func (r Reason) String() string {
	return name(int(r), "granted", "retry budget", "attempts", "rate", "exceeds share", "no share", "closed")
}

// Verdict is a local decision.
type Verdict struct {
	Admit  bool
	Reason Reason
	// Charge is the index of the charge that has to wait longest, -1 where no
	// single one is the reason.
	Charge int
	// RetryAfter is whole milliseconds, positive, of a refusal that isn't Never. It
	// is when the share will have earned what is missing, if nobody else takes it;
	// awayFor where only the authority's return helps.
	RetryAfter time.Duration
	// Never is that no waiting helps.
	Never bool
	// FreesIn is when the retry budget's window would let the client through.
	FreesIn time.Duration
	// Ask is that the authority may admit what Permit and Consider refuse, and answers: it
	// has said nothing yet of this client's retry budget, or that has a floor which is not
	// used up here.
	Ask bool
}

// awayFor is what a refusal asks to wait that ends when the authority is back,
// which nobody knows.
const awayFor = time.Second

// slot is what charge has found and taken for one charge.
type slot struct {
	account *account
	tally   *tally
	paced   *paced
	before  bucket.Bucket
	// fresh: paced was made for this request. uncounted: nothing is to be counted.
	fresh, uncounted bool
	// lapsed: the authority keeps the share no longer.
	lapsed bool
}

// Decide decides without the authority: because the client is away, or, while it
// is not, for a single call that got no answer in time. The latter changes no
// state; in mode Share it is refused, because nothing has been earned yet.
//
// What it admits is recorded in the retry budget and counted for the report.
func (m *Machine) Decide(now time.Time, r Request) Verdict {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := m.sinceLocked(now)
	budget := m.mu.budgets.of(at, r.Client)
	verdict := budget.decide(at, r.Attempt, m.floorLocked())
	if verdict.Admit {
		verdict = m.chargeLocked(at, r)
	}
	if verdict.Admit {
		budget.record(at, 1, retries(r.Attempt))
	}
	if m.mu.row.away() {
		m.mu.incident.count(verdict.Admit)
	}
	return verdict
}

// Permit says whether a client that needs nobody for this request, because it
// spends a lease that it holds, may go ahead as far as its retry budget is
// concerned, and records it if so.
func (m *Machine) Permit(now time.Time, client string, attempt uint32) Verdict {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := m.sinceLocked(now)
	budget := m.mu.budgets.of(at, client)
	verdict := m.considerLocked(at, budget, attempt)
	if verdict.Admit && attempt > 0 {
		verdict = budget.pay(at, m.mu.budgets.tokens)
	}
	if verdict.Admit {
		budget.record(at, 1, retries(attempt))
	}
	return verdict
}

// Consider is what Permit would say, except that it does not look at the balance of
// tokens: before something is taken that a refusal would have to give back. It records
// nothing.
func (m *Machine) Consider(now time.Time, client string, attempt uint32) Verdict {
	if attempt == 0 {
		return Verdict{Admit: true, Charge: -1}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	at := m.sinceLocked(now)
	return m.considerLocked(at, m.mu.budgets.of(at, client), attempt)
}

// considerLocked is what a budget says of what needs nobody, and whether the authority
// may say something else.
func (m *Machine) considerLocked(at time.Duration, b *budget, attempt uint32) Verdict {
	if !b.limited {
		return Verdict{Admit: true, Charge: -1}
	}
	verdict := b.decide(at, attempt, m.floorLocked())
	if !verdict.Admit && !m.mu.row.away() {
		verdict.Ask = !b.learnt || b.decide(at, attempt, WholePPM).Admit
	}
	return verdict
}

// floorLocked is which part of the floors of retry budgets this client may assume to
// be its own, in parts per million: its share of what is shared, while nobody answers.
// Otherwise the authority admits by the floor, and knows what all have retried.
func (m *Machine) floorLocked() int64 {
	if !m.mu.row.away() {
		return 0
	}
	return m.mu.standard.share
}

// Retry says whether a client may make a request that is retry number attempt, as
// far as its balance of tokens is concerned, and pays for it: before anybody is
// asked. A first attempt costs nothing, nor does anything where there are no
// tokens.
func (m *Machine) Retry(now time.Time, client string, attempt uint32) Verdict {
	if attempt == 0 || m.tokens == nil {
		return Verdict{Admit: true, Charge: -1}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	at := m.sinceLocked(now)
	return m.mu.budgets.of(at, client).pay(at, m.tokens)
}

// Succeeded refunds what a client's balance of tokens gets for work that has
// succeeded.
func (m *Machine) Succeeded(now time.Time, client string) {
	if m.tokens == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.budgets.of(m.sinceLocked(now), client).tokens.Success(*m.tokens)
}

// Count records requests of a client that somebody else has admitted: the
// authority, while all is well. total are all of them, retries those that were
// no first attempts. The budget so knows the client when the authority is lost.
func (m *Machine) Count(now time.Time, client string, total, retries int64) {
	if total <= 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	at := m.sinceLocked(now)
	m.mu.budgets.of(at, client).record(at, total, max(0, min(retries, total)))
}

func retries(attempt uint32) int64 { return int64(min(attempt, 1)) }

// chargeLocked pays every charge or none (G3). The charges are taken one after
// another and put back as they were if one of them can't be paid: so two keys
// that share a bucket see each other.
func (m *Machine) chargeLocked(at time.Duration, r Request) Verdict {
	verdict := Verdict{Admit: true, Charge: -1}
	slots := m.mu.slots[:0]
	for i := range r.Charges {
		c := &r.Charges[i]
		one, reason, wait := m.takeLocked(at, c, r.Class)
		slots = append(slots, one)
		if refused := (Verdict{Reason: reason, Charge: i, RetryAfter: wait}); reason != Granted && refused.outlasts(verdict) {
			verdict = refused
		}
	}
	m.mu.slots = slots
	if verdict.Admit {
		m.spendLocked(r, slots)
	} else {
		m.putBackLocked(r, slots)
	}
	// No pointer stays behind in the scratch space.
	clear(slots)
	return verdict
}

// outlasts says whether a refusal tells more than what another charge was told:
// what only the return of the authority ends comes first, then the longest wait.
func (v Verdict) outlasts(other Verdict) bool {
	switch {
	case other.Admit:
		return true
	case v.Reason == Rate && other.Reason == Rate:
		return v.RetryAfter > other.RetryAfter
	default:
		return other.Reason == Rate
	}
}

// takeLocked finds where a charge is counted, and takes it from its bucket where
// it is paced.
func (m *Machine) takeLocked(at time.Duration, c *Charge, class string) (slot, Reason, time.Duration) {
	r := m.ruleLocked(c.Limit)
	if r.Unlimited {
		return slot{uncounted: true}, Granted, 0
	}
	if r.Mode == Closed {
		return slot{}, Refused, awayFor
	}
	one := slot{account: m.mu.accounts.byKey[target{c.Limit, c.Key, c.Dimension, class}]}
	if one.account != nil {
		one.tally = one.account.tally
	}
	if r.Mode == Open || c.Amount < 1 {
		return one, Granted, 0
	}
	p := r.pace(c.Dimension)
	switch {
	case p == nil || p.shape == nil || p.shape.IsZero():
		return one, NoShare, awayFor
	case c.Amount > p.shape.Burst():
		return one, ExceedsShare, awayFor
	case !m.mu.row.away():
		return one, Rate, awayFor
	}
	m.bucketLocked(&one, c)
	if one.paced == nil {
		return one, NoShare, awayFor
	}
	one.lapsed = !r.lasts(m.mu.incident.startedAt, bucket.Instant(at))
	one.paced.bring(m.mu.incident, r.since, p.shape, bucket.Instant(at))
	one.before = one.paced.bucket
	if _, ok := one.paced.bucket.Take(p.shape, 0, c.Amount); ok {
		return one, Granted, 0
	}
	wait, never := one.paced.bucket.RetryAfter(p.shape, 0, c.Amount)
	if never {
		wait = awayFor
	}
	return one, Rate, wait
}

// bucketLocked finds the bucket of a charge, or makes it. It leaves it out where
// there is no place even for its limit.
func (m *Machine) bucketLocked(one *slot, c *Charge) {
	if one.account != nil && one.account.paced != nil {
		one.paced = one.account.paced
		return
	}
	at := target{limit: c.Limit, key: c.Key, dimension: c.Dimension}
	if one.paced = m.mu.accounts.paced[at]; one.paced != nil {
		return
	}
	if len(m.mu.accounts.paced) < m.mu.accounts.most {
		one.paced, one.fresh = new(paced), true
		m.mu.accounts.paced[at] = one.paced
		return
	}
	t := m.mu.accounts.tally(c.Limit, c.Dimension)
	if t == &m.mu.accounts.rest {
		return
	}
	if t.spill == nil {
		t.spill = new(paced)
	}
	one.paced = t.spill
}

// bring makes the bucket what it has to be at: empty at the start of each
// incident, whatever an earlier one has left (T34), and since then filled by this
// client's share alone.
func (p *paced) bring(i incident, since bucket.Instant, shape *bucket.Shape, at bucket.Instant) {
	if p.incident != i.number {
		p.incident, p.shape = i.number, shape
		p.bucket = shape.Empty(max(i.startedAt, since))
	}
	p.bucket.Advance(p.shape, at)
	if p.shape != shape {
		p.bucket.Convert(p.shape, shape, nil)
		p.shape = shape
	}
}

// putBackLocked undoes what was taken, the last first.
func (m *Machine) putBackLocked(r Request, slots []slot) {
	for i := len(slots) - 1; i >= 0; i-- {
		one, c := &slots[i], &r.Charges[i]
		switch {
		case one.fresh:
			// A refusal leaves no record.
			delete(m.mu.accounts.paced, target{limit: c.Limit, key: c.Key, dimension: c.Dimension})
		case one.paced != nil:
			one.paced.bucket = one.before
		}
	}
}

// spendLocked counts what was admitted.
func (m *Machine) spendLocked(r Request, slots []slot) {
	for i := range slots {
		one, c := &slots[i], &r.Charges[i]
		if one.uncounted || c.Amount < 1 {
			continue
		}
		if one.tally == nil {
			one.tally = m.mu.accounts.tally(c.Limit, c.Dimension)
		}
		if one.account == nil {
			at := target{c.Limit, c.Key, c.Dimension, r.Class}
			one.account = m.mu.accounts.byKey[at]
			if one.account == nil {
				one.account = m.mu.accounts.open(at, one.tally)
			}
		}
		if one.fresh {
			m.mu.accounts.keep(c, one.paced)
		}
		if one.account != nil && one.paced != one.tally.spill {
			one.account.paced = one.paced
		}
		m.mu.accounts.spend(one.account, one.tally, c.Amount)
		if m.mu.row.away() {
			one.tally.count(m.mu.incident.number, one.paced, c.Amount)
			one.tally.lapsed = one.tally.lapsed || one.lapsed
		}
	}
}

// count adds to what was admitted in this incident.
func (t *tally) count(incident uint64, from *paced, tokens int64) {
	if t.incident != incident {
		t.incident, t.spent, t.keys, t.lapsed = incident, 0, 0, false
	}
	t.spent = add(t.spent, tokens)
	if from != nil && from.spent != incident {
		from.spent = incident
		t.keys++
	}
}
