package grant

import (
	"crypto/rand"
	"encoding/binary"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/batch"
	"github.com/quorlease/quorlease/cluster/door"
	"github.com/quorlease/quorlease/cluster/escrow"
	"github.com/quorlease/quorlease/cluster/outcome"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/effect"
)

// Config is what an Office needs of its node. All of it but Boot is required; the functions are
// called from any goroutine and must not block.
type Config struct {
	// Node is its Raft id.
	Node string
	// Boot is the process's own number; 0: it is drawn at random, as it has to be wherever
	// another process may have run before (T7).
	Boot uint64
	// Elapsed is the node's own clock, which goes on while the machine sleeps.
	Elapsed func() time.Duration
	// Now is the authority time as far as the node can tell: what was promised long ago is
	// over when the log is read again.
	Now func() bucket.Instant
	// Failover is how long the cluster is likely to be without a leader when it loses
	// one.
	Failover time.Duration
	// View runs its argument with the machine, while no entry is applied.
	View func(func(*fsm.Machine))
	// Revision is that of the limits which the node has applied.
	Revision func() uint64
	// Propose proposes an operation of the node's own.
	Propose escrow.Propose
	// Wanted reports whether anybody waits at a key of a limit, here on the leader.
	Wanted func(limit, key string) bool
	// Answer answers an item that is not proposed.
	Answer func(*door.Item, *logv1.Result)
}

// Office grants, reserves and gives back. Safe for concurrent use.
type Office struct {
	config   Config
	boot     uint64
	Wallet   *escrow.Wallet
	promises escrow.Promises
	// found is how far the log went at the start, warmed says that all of it was applied.
	found  uint64
	warmed bool
}

// New returns the office of a process. Keep is the caller's to start.
func New(c Config) *Office {
	var drawn [8]byte
	// crypto/rand.Read never fails: it ends the program instead.
	_, _ = rand.Read(drawn[:])
	boot := binary.LittleEndian.Uint64(drawn[:])
	if c.Boot != 0 {
		boot = c.Boot
	}
	return &Office{config: c, boot: boot, Wallet: escrow.New(escrow.Config{
		Node: c.Node, Boot: boot, Elapsed: c.Elapsed, Failover: c.Failover,
	})}
}

// Keep proposes what the wallet wants until stop is closed.
func (o *Office) Keep(stop <-chan struct{}) { o.Wallet.Keep(stop, o.config.Propose) }

// leaveStep is how often it is looked whether asks that were under way have brought something.
const leaveStep = 5 * time.Millisecond

// Leave ends granting and gives back what is held, and what asks under way still bring, within
// a time: the process ends. Where nobody leads it is left to end by itself.
func (o *Office) Leave(within time.Duration) {
	timer := time.NewTimer(within)
	defer timer.Stop()
	step := time.NewTicker(leaveStep)
	defer step.Stop()
	for {
		returns := o.Wallet.Leave()
		told := make(chan struct{}, len(returns))
		for _, r := range returns {
			o.config.Propose(r.Operation, within, func(_ *logv1.Result, err error) {
				o.Wallet.Returned(r, err)
				told <- struct{}{}
			})
		}
		for range returns {
			select {
			case <-told:
			case <-timer.C:
				return
			}
		}
		if !o.Wallet.Awaits() {
			return
		}
		select {
		case <-step.C:
		case <-timer.C:
			return
		}
	}
}

// Hold is what was set aside for an acquire. The zero Hold is nothing.
type Hold struct{ reserved *escrow.Reservation }

// Admit grants an acquire from what the node holds, which needs neither a leader nor a
// quorum; then the answer is not nil. One that goes on takes with it what may pay for it:
// it is the operation to propose. What else the node holds of its buckets goes back
// before it (T16, T44). waits says that it may be proposed more than once.
func (o *Office) Admit(op *logv1.Operation, waits bool, hold *Hold) (answer *logv1.Result, propose *logv1.Operation) {
	acquire := op.GetAcquire()
	if acquire == nil {
		return nil, op
	}
	switch {
	case acquire.GetTrack():
		if !waits {
			hold.reserved = o.Wallet.Reserve(acquire)
		}
		if hold.reserved != nil {
			op = hold.reserved.Operation
		}
	case len(acquire.GetLeaseId()) == 0 || !o.remembers(acquire.GetLeaseId()):
		if answer = o.Wallet.Take(acquire); answer != nil {
			return answer, nil
		}
	}
	if back := o.Wallet.Vacate(op.GetAcquire()); back != nil {
		o.Wallet.GiveBack(back, o.config.Propose)
	}
	return nil, op
}

func (o *Office) remembers(id []byte) (known bool) {
	o.config.View(func(m *fsm.Machine) { known = m.Remembers(id) })
	return known
}

// Finished takes what became of an acquire that was admitted.
func (o *Office) Finished(acquire *logv1.Acquire, hold Hold, result *logv1.AcquireResult, err error) {
	if hold.reserved != nil && (!outcome.MayHaveHappened(err) || err == nil && !result.GetGranted()) {
		o.Wallet.Free(hold.reserved, err == nil)
	}
	if result.GetGranted() && !result.GetEscrow() && !result.GetRepeated() {
		o.Wallet.Note(acquire)
	}
}

// Applied takes what an entry says of escrow. It is told before anybody hears of the
// entry.
func (o *Office) Applied(ops []*logv1.Operation, results []*logv1.Result, effects []effect.Effect) {
	o.Wallet.Applied(ops, results)
	for i, op := range ops {
		if ask := op.GetAskEscrow(); ask != nil {
			o.recall(ask, results[i].GetEscrow())
		}
	}
	stale := o.Wallet.Revision() != o.config.Revision()
	for _, e := range effects {
		switch e.Kind {
		case effect.EscrowVoided:
			o.Wallet.Void(e.Limit, e.Key)
		case effect.NodeSet, effect.NodeRemoved:
			stale = true
		default:
		}
	}
	if stale {
		o.config.View(o.configure)
	}
	for _, r := range results {
		o.Denied(r.GetAcquire())
	}
}

// recall takes what an entry gave to an earlier process of this node.
func (o *Office) recall(op *logv1.AskEscrow, r *logv1.EscrowResult) {
	if id := op.GetId(); id.GetNode() != o.config.Node || id.GetBoot() == o.boot || r.GetAmount() == 0 {
		return
	}
	o.Wallet.Recall(time.Duration(o.config.Now()), op, r.GetAmount(), time.Duration(r.GetLife()))
}

// Found says up to where the log went that the process found, before anything is applied.
func (o *Office) Found(last uint64, err error) error {
	o.found = last
	return err
}

// Reached says up to where the node has applied the log. At the end of what it found it
// asks for what an earlier process of this node held at last. One goroutine calls it.
func (o *Office) Reached(index uint64) {
	if !o.warmed && index >= o.found {
		o.warmed = true
		o.Wallet.Warm(time.Duration(o.config.Now()))
	}
}

// Restored takes what a snapshot says of escrow: entries were skipped (T43).
func (o *Office) Restored(m *fsm.Machine) {
	var records []escrow.Record
	for h := range m.Escrow().Held(o.config.Node, o.boot) {
		records = append(records, escrow.Record{
			Sequence: h.ID.Sequence, Amount: h.Left, Void: h.Void, Left: h.Life,
		})
	}
	o.Wallet.Restored(records)
	o.configure(m)
	for h := range m.Escrow().Left(o.config.Node, o.boot) {
		op := &logv1.AskEscrow{Limit: h.Limit, Key: h.Key, Dimension: h.Dimension, Class: h.Class}
		o.Wallet.Recall(time.Duration(m.Now()), op, h.Amount, h.Life)
	}
}

// configure tells the wallet which limits may have escrow.
func (o *Office) configure(m *fsm.Machine) {
	var list []*escrow.Terms
	for t := range m.Escrow().Terms() {
		list = append(list, termsOf(m, t))
	}
	o.Wallet.Configure(m.Revision(), list)
}

// Denied notes what an acquire was told, where anybody may ask for escrow of what it is
// of. It takes nil for none.
func (o *Office) Denied(denied *logv1.AcquireResult) {
	for _, d := range denied.GetDenials() {
		if o.Wallet.Knows(d.GetLimit()) {
			o.promises.Denied(time.Duration(o.config.Now()), denied)
			return
		}
	}
}

// Behind reports whether an entry in the making asks for escrow of a key that an acquire
// of the one before charges: then it is made when that one was told to the office.
func Behind(operations, before []*logv1.Operation) bool {
	type place struct{ limit, key string }
	var asked map[place]bool
	for _, op := range operations {
		if ask := op.GetAskEscrow(); ask != nil {
			if asked == nil {
				asked = make(map[place]bool)
			}
			asked[place{ask.GetLimit(), ask.GetKey()}] = true
		}
	}
	if asked == nil {
		return false
	}
	for _, op := range before {
		for _, c := range op.GetAcquire().GetCharges() {
			if asked[place{c.GetLimit(), c.GetKey()}] {
				return true
			}
		}
	}
	return false
}

// Without answers those asks for escrow of buckets that somebody waits for, or was told
// to come back to, and returns the others: they cost no entry (T27, T46).
func (o *Office) Without(b *batch.Batch[*door.Item]) *batch.Batch[*door.Item] {
	var left *batch.Batch[*door.Item]
	for i, it := range b.Waiters() {
		wait, contended := o.contended(it.Operation.GetAskEscrow())
		if contended && left == nil {
			left = &batch.Batch[*door.Item]{}
			for _, before := range b.Waiters()[:i] {
				left.Add(before.Operation, before.Size, before)
			}
		}
		switch {
		case contended:
			o.config.Answer(it, later(wait))
		case left != nil:
			left.Add(it.Operation, it.Size, it)
		}
	}
	if left == nil {
		return b
	}
	return left
}

func (o *Office) contended(ask *logv1.AskEscrow) (wait time.Duration, yes bool) {
	if ask == nil {
		return 0, false
	}
	wait = o.promises.Wait(time.Duration(o.config.Now()), ask)
	return wait, wait > 0 || o.config.Wanted(ask.GetLimit(), ask.GetKey())
}

func later(wait time.Duration) *logv1.Result {
	return &logv1.Result{Kind: &logv1.Result_Escrow{Escrow: &logv1.EscrowResult{
		Outcome: logv1.EscrowResult_OUTCOME_CONTENDED, Wait: int64(wait),
	}}}
}
