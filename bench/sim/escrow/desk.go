// Package escrow is what the processes of a simulated world grant by themselves: the real
// office and wallet of a node, in virtual time.
//
// What it proposes goes where the world sends it, and what became of that comes back
// when the world says so: lost, late, twice or never. The judge hears of everything that is
// granted, and of what the node has applied.
package escrow

import (
	"cmp"
	"slices"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/bench/sim/judge"
	"github.com/quorlease/quorlease/bench/sim/replica"
	"github.com/quorlease/quorlease/bench/sim/stage"
	"github.com/quorlease/quorlease/cluster/batch"
	"github.com/quorlease/quorlease/cluster/door"
	"github.com/quorlease/quorlease/cluster/grant"
	"github.com/quorlease/quorlease/cluster/outcome"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
)

const (
	// stepEvery is how often a wallet steps at most, as on a real node.
	stepEvery = 10 * time.Millisecond
	failover  = 1500 * time.Millisecond
)

// Config is what a desk needs of its world.
type Config struct {
	Stage   *stage.Stage
	Host    *stage.Host
	Judge   *judge.Judge
	Process judge.Process
	// Limit is the one of which nodes hold something.
	Limit *logv1.Limit
	// Now is the authority time as far as the process can tell.
	Now func() bucket.Instant
	// Replica is what the process has applied.
	Replica func() *replica.Replica
	// Propose sends an operation on its way. done may be called again.
	Propose func(op *logv1.Operation, done func(*logv1.Result, error))
	// Wanted reports whether anybody waits at a key, Answer answers what is not proposed.
	Wanted func(limit, key string) bool
	Answer func(it *door.Item, result *logv1.Result)
}

// Desk is what one process grants by itself. A nil Desk grants nothing.
type Desk struct {
	config Config
	office *grant.Office
	// stepped is when it stepped last, due when it does next; turn numbers the plans.
	stepped, due time.Duration
	turn         int
}

// New is that of a process that begins.
func New(c Config) *Desk {
	d := &Desk{config: c}
	d.office = grant.New(grant.Config{
		Node: c.Process.Node, Boot: c.Process.Boot, Elapsed: c.Host.Boot, Now: c.Now, Failover: failover,
		View:     func(look func(*fsm.Machine)) { look(c.Replica().Machine) },
		Revision: func() uint64 { return c.Replica().Revision() },
		Propose:  d.propose, Wanted: c.Wanted, Answer: c.Answer,
	})
	return d
}

// propose proposes an operation of the office's own. What goes back together has no order.
func (d *Desk) propose(op *logv1.Operation, within time.Duration, done func(*logv1.Result, error)) {
	slices.SortFunc(op.GetReturnEscrow().GetReturns(), func(a, b *logv1.EscrowReturn) int {
		return cmp.Compare(a.GetId().GetSequence(), b.GetId().GetSequence())
	})
	over := false
	once := func(result *logv1.Result, err error) {
		if !over {
			over = true
			done(result, err)
			d.stir()
		}
	}
	d.config.Propose(op, once)
	d.config.Stage.At(d.config.Host, within, func() { once(nil, outcome.ErrUnknown) })
}

// stir has the wallet step soon where it wants to.
func (d *Desk) stir() {
	select {
	case <-d.office.Wallet.Wake():
		d.plan(0)
	default:
	}
}

func (d *Desk) plan(in time.Duration) {
	now := d.config.Host.Boot()
	in = max(in, d.stepped+stepEvery-now)
	if d.due != 0 && d.due <= now+in {
		return
	}
	d.due = now + in
	d.turn++
	turn := d.turn
	d.config.Stage.At(d.config.Host, in, func() {
		if d.turn == turn {
			d.step()
		}
	})
}

func (d *Desk) step() {
	d.due, d.stepped = 0, d.config.Host.Boot()
	work, next := d.office.Wallet.Step()
	for _, r := range work.Returns {
		d.office.Wallet.GiveBack(r, d.propose)
	}
	for _, op := range work.Asks {
		d.propose(&logv1.Operation{Kind: &logv1.Operation_AskEscrow{AskEscrow: op}},
			time.Duration(d.config.Limit.GetEscrow()), func(r *logv1.Result, err error) { d.office.Wallet.Answered(op, r, err) })
	}
	d.plan(next)
}

// Admitted is an acquire as it goes on to the leader. The zero Admitted is one that the
// desk has nothing to do with.
type Admitted struct {
	desk *Desk
	op   *logv1.Acquire
	hold grant.Hold
	over bool
}

// Admit grants an acquire from what the process holds: then the answer is not nil. What
// goes on else is propose.
func (d *Desk) Admit(op *logv1.Operation, waits bool) (answer *logv1.Result, propose *logv1.Operation, a *Admitted) {
	a = &Admitted{desk: d, op: op.GetAcquire()}
	answer, propose = d.office.Admit(op, waits, &a.hold)
	if answer != nil {
		d.config.Judge.Taken(d.config.Process, a.op)
		d.config.Judge.Demanded(d.config.Process, a.op)
	} else if a.whole(propose.GetAcquire()) {
		d.config.Judge.Vacated(d.config.Process, a.op, d.office.Wallet.Held()[d.config.Limit.GetName()])
	}
	d.stir()
	return answer, propose, a
}

// whole says that an acquire is of every bucket that the wallet may hold, and that none of
// them pays for it.
func (a *Admitted) whole(op *logv1.Acquire) bool {
	return len(op.GetCharges()) == len(a.desk.config.Limit.GetDimensions()) &&
		op.GetCharges()[0].GetLimit() == a.desk.config.Limit.GetName() &&
		!slices.ContainsFunc(op.GetCharges(), func(c *logv1.Charge) bool { return c.GetEscrow() != nil })
}

// Finished takes what became of it, once.
func (a *Admitted) Finished(result *logv1.Result, err error) {
	if a.over {
		return
	}
	a.over = true
	if decided := result.GetAcquire(); decided.GetGranted() {
		a.desk.config.Judge.Demanded(a.desk.config.Process, a.op)
	}
	a.desk.office.Finished(a.op, a.hold, result.GetAcquire(), err)
	a.desk.stir()
}

// Applied takes an entry that the process has applied.
func (d *Desk) Applied(entry *logv1.Entry, results []*logv1.Result) {
	if d == nil {
		return
	}
	effects := d.config.Replica().Effects
	d.config.Judge.Applied(d.config.Process, entry, results, effects)
	d.office.Applied(entry.GetOperations(), results, effects)
	d.stir()
}

// Restored takes that the process goes on from a snapshot.
func (d *Desk) Restored() {
	if d == nil {
		return
	}
	r := d.config.Replica()
	live := make(map[uint64]bool)
	for h := range r.Escrow().Held(d.config.Process.Node, d.config.Process.Boot) {
		live[h.ID.Sequence] = !h.Void
	}
	d.config.Judge.Restored(d.config.Process, live)
	d.office.Restored(r.Machine)
	d.stir()
}

// Denied takes a denial that this node has given without an entry.
func (d *Desk) Denied(denied *logv1.AcquireResult) {
	if d != nil {
		d.office.Denied(denied)
	}
}

// Without are items without those asks that can't be heard now, which it answers.
func (d *Desk) Without(items []*door.Item) []*door.Item {
	if d == nil {
		return items
	}
	var b batch.Batch[*door.Item]
	for _, it := range items {
		b.Add(it.Operation, it.Size, it)
	}
	return d.office.Without(&b).Waiters()
}
