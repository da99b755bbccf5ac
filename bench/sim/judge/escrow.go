package judge

import (
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/effect"
)

// escrows checks what nodes grant by themselves of one limit: no token that the log has
// not given to that very process, none twice, none that is void or has ended; what is
// outstanding of a bucket is never more than its rate gives in a life (T40); nobody who
// was told when to come back finds that a node took it (T46); and nobody asks for more
// than what was granted explains (T16).
type escrows struct {
	judge   *Judge
	limit   *logv1.Limit
	records map[escrowID]*lent
	buckets map[place][]*lent
	pots    map[pot]*held
	demand  map[pot]int64
	// behind are what goes back before an acquire without a record, by its id.
	behind map[string]*behind
	// largest is the largest burst that the limit ever had.
	largest int64
	// promises are denials whose callers have not come back yet.
	promises map[place][]promise
}

// Process is one process of a node. Boot is what it calls itself, Life what it is.
type Process struct {
	Node string
	Boot uint64
	Life int
}

type escrowID struct {
	node           string
	boot, sequence uint64
}

func idOf(id *logv1.EscrowID) escrowID { return escrowID{id.GetNode(), id.GetBoot(), id.GetSequence()} }

// lent is what one ask brought.
type lent struct {
	at           pot
	amount, paid int64
	until        int64
	// over: it was given back.
	over bool
	// by has it, nil before its node has applied the entry. void: not any more.
	by   *held
	void bool
}

// pot is what one process may have of a bucket for one class. What asks say is of no
// process: anybody may send them.
type pot struct {
	process Process
	place
	class string
}

// held is what is left of it at most.
type held struct {
	room, until int64
	all         []*lent
}

// behind is what an acquire goes to the leader behind. often: it went more than once, and
// one may have been faster.
type behind struct {
	ids   []escrowID
	often bool
}

// promise is a denial: until when its caller stays away, in authority time and in real
// time. Without a leader the one stands still.
type promise struct {
	index uint64
	until int64
	real  time.Duration
}

// Escrow has the judge look at what nodes grant of a limit.
func (j *Judge) Escrow(limit *logv1.Limit) {
	j.escrows.limit = limit
	j.escrows.records = make(map[escrowID]*lent)
	j.escrows.buckets = make(map[place][]*lent)
	j.escrows.pots, j.escrows.demand = make(map[pot]*held), make(map[pot]int64)
	j.escrows.behind = make(map[string]*behind)
	j.escrows.promises = make(map[place][]promise)
}

// take takes an operation of the log.
func (e *escrows) take(c *Committed, op *logv1.Operation, result *logv1.Result) {
	if e.limit == nil {
		return
	}
	switch kind := op.GetKind().(type) {
	case *logv1.Operation_ApplyLimits:
		for _, one := range result.GetLimits().GetChanges() {
			if after := one.GetLimitAfter(); after.GetName() == e.limit.GetName() {
				e.limit = after
				e.largest = max(e.largest, after.GetDimensions()[0].GetBurst())
			}
		}
	case *logv1.Operation_AskEscrow:
		e.ask(c, kind.AskEscrow, result.GetEscrow())
	case *logv1.Operation_ReturnEscrow:
		for _, r := range kind.ReturnEscrow.GetReturns() {
			e.back(int64(c.Now), r)
		}
	case *logv1.Operation_Acquire:
		e.acquire(c, kind.Acquire, result.GetAcquire())
	}
}

func (e *escrows) ask(c *Committed, op *logv1.AskEscrow, result *logv1.EscrowResult) {
	if result.GetOutcome() != logv1.EscrowResult_OUTCOME_GRANTED || result.GetRepeated() {
		return
	}
	now, at := int64(c.Now), place{op.GetLimit(), op.GetKey(), op.GetDimension()}
	from := pot{Process{Node: op.GetId().GetNode(), Boot: op.GetId().GetBoot()}, at, op.GetClass()}
	one := &lent{at: from, amount: result.GetAmount(), until: now + result.GetLife()}
	e.records[idOf(op.GetId())] = one
	e.judge.debits.grant(&logv1.Operation{}, at, one.amount)
	all, sum := e.buckets[at][:0], int64(0)
	for _, other := range append(e.buckets[at], one) {
		if !other.over && now < other.until {
			all, sum = append(all, other), sum+other.amount
		}
	}
	e.buckets[at] = all
	for _, d := range e.limit.GetDimensions() {
		if d.GetName() != at.dimension {
			continue
		}
		if most := d.GetAmount() * (e.limit.GetEscrow() / units); sum > most {
			e.judge.Complain("escrow", "%d tokens of %v are outstanding, at most %d may be", sum, at, most)
		}
		// For three seconds, with two deviations.
		if most := max(1, e.largest/64, 7*e.demand[from]); op.GetAmount() > most {
			e.judge.Complain("escrow", "%v asks for %d of %v: what it has granted explains %d", op.GetId(),
				op.GetAmount(), at, most)
		}
	}
	for _, p := range e.promises[at] {
		known := p.index == c.Index || p.index > c.Stamp.Restored && p.index <= c.Stamp.Applied
		if known && now < p.until && c.Stamp.Real < p.real {
			e.judge.Complain("escrow", "%v is given %d of %v at index %d, though who was denied at %d comes back in %v",
				op.GetId(), one.amount, at, c.Index, p.index, time.Duration(p.until-now))
		}
	}
}

func (e *escrows) back(now int64, r *logv1.EscrowReturn) {
	one := e.records[idOf(r.GetId())]
	if one == nil || one.over || now >= one.until {
		return
	}
	one.over = true
	if r.GetUnspent()+one.paid > one.amount {
		e.judge.Complain("escrow", "%v gives %d back of %d, of which %d have paid", r.GetId(), r.GetUnspent(), one.amount,
			one.paid)
	}
	n := min(r.GetUnspent(), one.amount-one.paid)
	e.judge.debits.bucket(one.at.place).net -= n * units
	one.spend(n)
}

// spend takes n out of what its node may spend.
func (l *lent) spend(n int64) {
	if l.by != nil && !l.void {
		l.by.room -= n
	}
}

// overtaken checks that what had to come back before an acquire has (T44).
func (e *escrows) overtaken(c *Committed, op *logv1.Acquire) {
	b := e.behind[string(op.GetLeaseId())]
	if b == nil || b.often {
		return
	}
	for _, id := range b.ids {
		if one := e.records[id]; one != nil && !one.over && int64(c.Now) < one.until {
			e.judge.Complain("escrow", "%v is decided at index %d before %v has come back", op, c.Index, id)
		}
	}
}

// denied keeps what somebody was told, and forgets what is over.
func (e *escrows) denied(c *Committed, d *logv1.Denial) {
	at := place{d.GetLimit(), d.GetKey(), d.GetDimension()}
	if at.limit != e.limit.GetName() || d.GetRetryAfter() <= 0 {
		return
	}
	kept := e.promises[at][:0]
	for _, p := range e.promises[at] {
		if int64(c.Now) < p.until {
			kept = append(kept, p)
		}
	}
	wait := d.GetRetryAfter()
	e.promises[at] = append(kept, promise{c.Index, int64(c.Now) + wait, c.Real + time.Duration(wait)})
}

func (e *escrows) acquire(c *Committed, op *logv1.Acquire, result *logv1.AcquireResult) {
	if result == nil || result.GetRepeated() {
		return
	}
	e.overtaken(c, op)
	for _, d := range result.GetDenials() {
		e.denied(c, d)
	}
	for _, i := range result.GetPaid() {
		charge := op.GetCharges()[i]
		one := e.records[idOf(charge.GetEscrow())]
		at := place{charge.GetLimit(), charge.GetKey(), charge.GetDimension()}
		if one == nil || one.over || one.at.place != at || int64(c.Now) >= one.until ||
			one.paid+charge.GetAmount() > one.amount || one.at.class != op.GetClass() {
			e.judge.Complain("escrow", "charge %d of %v is paid by %+v", i, op, one)
			continue
		}
		one.paid += charge.GetAmount()
		one.spend(charge.GetAmount())
	}
}

// Applied notes that a node has applied an entry, before it grants anything more: it has
// what its asks brought, and no more what is void.
func (j *Judge) Applied(p Process, entry *logv1.Entry, results []*logv1.Result, effects []effect.Effect) {
	e := &j.escrows
	for i, op := range entry.GetOperations() {
		ask := op.GetAskEscrow()
		if ask.GetId().GetNode() != p.Node || ask.GetId().GetBoot() != p.Boot {
			continue
		}
		if results[i].GetEscrow().GetOutcome() == logv1.EscrowResult_OUTCOME_GRANTED {
			e.give(p, e.records[idOf(ask.GetId())])
		}
	}
	for _, one := range effects {
		if one.Kind != effect.EscrowVoided || one.Limit != e.limit.GetName() {
			continue
		}
		for at, h := range e.pots {
			if at.process == p && (one.Key == "" || one.Key == at.key) {
				h.void()
			}
		}
	}
}

// give has a process hold what an ask brought, once.
func (e *escrows) give(p Process, one *lent) {
	if one == nil || one.by != nil {
		return
	}
	h := e.held(pot{p, one.at.place, one.at.class})
	one.by = h
	h.all, h.room, h.until = append(h.all, one), h.room+one.amount, max(h.until, one.until)
}

func (e *escrows) held(at pot) *held {
	h := e.pots[at]
	if h == nil {
		h = &held{}
		e.pots[at] = h
	}
	return h
}

func (h *held) void() {
	for _, one := range h.all {
		one.void = true
	}
	*h = held{}
}

// Restored notes that a node goes on from a snapshot, in which those records of it can
// be spent that live says, by their sequences (T43).
func (j *Judge) Restored(p Process, live map[uint64]bool) {
	e := &j.escrows
	kept := make(map[*held]bool)
	for sequence, good := range live {
		if !good {
			continue
		}
		if one := e.records[escrowID{p.Node, p.Boot, sequence}]; one != nil {
			e.give(p, one)
			kept[one.by] = true
		}
	}
	for at, h := range e.pots {
		if at.process == p && !kept[h] {
			h.void()
		}
	}
}

// Taken notes that a node has granted an acquire by itself.
func (j *Judge) Taken(p Process, op *logv1.Acquire) {
	for _, c := range op.GetCharges() {
		at := place{c.GetLimit(), c.GetKey(), c.GetDimension()}
		h := j.escrows.held(pot{p, at, op.GetClass()})
		if int64(j.clock.now) >= h.until {
			j.Complain("escrow", "%+v grants %d of %v for class %q of what ended at %v: authority time is %v", p,
				c.GetAmount(), at, op.GetClass(), time.Duration(h.until), time.Duration(j.clock.now))
		}
		if h.room -= c.GetAmount(); h.room < 0 {
			j.Complain("escrow", "%+v grants %d of %v for class %q, %d more than it has", p, c.GetAmount(), at, op.GetClass(),
				-h.room)
		}
	}
}

// Demanded notes that an acquire was granted to a caller of a node, however.
func (j *Judge) Demanded(p Process, op *logv1.Acquire) {
	p.Life = 0
	for _, c := range op.GetCharges() {
		j.escrows.demand[pot{p, place{c.GetLimit(), c.GetKey(), c.GetDimension()}, op.GetClass()}] += c.GetAmount()
	}
}

// Sent notes that an acquire goes to the leader, and what goes back before it (T44).
func (j *Judge) Sent(op *logv1.Acquire, before []*logv1.Operation) {
	if j.escrows.limit == nil || op.GetTrack() {
		return
	}
	if again := j.escrows.behind[string(op.GetLeaseId())]; again != nil {
		again.often = true
		return
	}
	b := &behind{}
	for _, one := range before {
		for _, r := range one.GetReturnEscrow().GetReturns() {
			b.ids = append(b.ids, idOf(r.GetId()))
		}
	}
	j.escrows.behind[string(op.GetLeaseId())] = b
}

// Vacated notes what a node still holds of a bucket for which it sends an acquire to the
// leader (T16).
func (j *Judge) Vacated(p Process, op *logv1.Acquire, left int64) {
	if left > 0 {
		j.Complain("escrow", "%+v sends %v to the leader and keeps %d tokens", p, op, left)
	}
}
