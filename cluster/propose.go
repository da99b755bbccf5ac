package cluster

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/batch"
	"github.com/quorlease/quorlease/cluster/door"
	"github.com/quorlease/quorlease/cluster/entry"
	"github.com/quorlease/quorlease/cluster/grant"
	"github.com/quorlease/quorlease/cluster/lineup"
	"github.com/quorlease/quorlease/cluster/outcome"
)

const (
	// tickEvery is how long a leader stamps nothing before it proposes a tick: an
	// election loses the age of the last entry, so that must stay small (T2).
	tickEvery = time.Second
	// enqueueMax is how long raft may take to accept an entry. It bounds only
	// the handing over (R1); the waiters have deadlines of their own.
	enqueueMax = 5 * time.Second
)

// proposer turns operations into entries. It is the only user of raft.Apply.
//
// One goroutine proposes one entry at a time; what arrives until it is committed
// is the next entry. Nothing is ever delayed to make an entry fuller: with one in
// flight, load makes the entries larger by itself, and several in flight were
// measured to be no faster. Another goroutine answers, so that the next entry is
// being written while this node applies the last one and tells its waiters.
type proposer struct {
	node *Node
	// line is what waits for the next entry, wake says that there is something to do.
	line *lineup.Line
	wake nudger
	// begun is nudged when this node begins to apply an entry, which is then committed.
	begun nudger
	// proposals are what raft has, in order. There is room for what is being applied.
	proposals chan *proposal
	// ended is closed when run has returned.
	ended chan struct{}

	// last is the last entry.
	last *proposal
	// lastStamp is when the last entry was stamped, on the node's own clock.
	lastStamp time.Time
}

// proposal is an entry that raft has.
type proposal struct {
	batch  *batch.Batch[*door.Item]
	future raft.ApplyFuture
	since  time.Time
	// decided is closed when its fate is known.
	decided chan struct{}
}

func newProposer(n *Node) *proposer {
	return &proposer{
		node: n, line: lineup.New(n.door, 2*n.config.MaxPending), wake: newNudger(), begun: newNudger(),
		proposals: make(chan *proposal, 1), ended: make(chan struct{}),
	}
}

// serve lets operations in.
func (p *proposer) serve(term uint64) {
	p.line.Serve(term)
	p.wake.nudge()
}

// drop lets nothing in any more and sends what was not proposed elsewhere.
func (p *proposer) drop() {
	for _, it := range p.line.Drop() {
		p.node.reroute(it)
	}
}

// term is the term in which this node serves as the leader, 0 while it doesn't.
func (p *proposer) term() uint64 { return p.line.Term() }

// enqueue takes items for the next entry, one right behind the other. It returns
// false, and takes none, when this node does not serve as the leader.
func (p *proposer) enqueue(items ...*door.Item) bool {
	if !p.line.Add(items...) {
		return false
	}
	p.wake.nudge()
	return true
}

// run proposes until stop is closed.
func (p *proposer) run(stop <-chan struct{}) {
	timer := time.NewTimer(tickEvery)
	defer timer.Stop()
	defer close(p.ended)
	var answering sync.WaitGroup
	answering.Go(p.answer)
	defer answering.Wait()
	defer close(p.proposals)
	for {
		select {
		case <-stop:
			return
		case <-p.wake.wake:
		case <-timer.C:
		}
		for p.step(stop) {
		}
		// The timer counts from the last stamp, not from now: idle wake-ups must
		// not put the tick off.
		timer.Reset(max(time.Millisecond, tickEvery-time.Since(p.lastStamp)))
	}
}

// step proposes the next entry, if there is one, and reports whether to go on
// at once.
func (p *proposer) step(stop <-chan struct{}) bool {
	select {
	case <-stop:
		return false
	default:
	}
	b, term := p.line.Next()
	taken := b.Len()
	if last := p.last; last != nil && grant.Behind(b.Operations(), last.batch.Operations()) {
		// Whether a bucket is promised to anybody the entry says that is being applied (T46).
		<-last.decided
	}
	b = p.node.grants.Without(b)
	if term == 0 {
		p.lastStamp = time.Now()
		return false
	}
	if b.Len() == 0 && time.Since(p.lastStamp) < tickEvery {
		return taken > 0
	}
	p.propose(b, term)
	return taken > 0
}

// propose stamps and proposes one entry, and waits until it is committed or its
// fate is known. Its waiters are answered by answer.
func (p *proposer) propose(b *batch.Batch[*door.Item], term uint64) {
	n := p.node
	if b.Len() > 0 && n.space.Low() {
		p.fail(b, ErrDiskLow)
		return
	}
	start := time.Now()
	p.lastStamp = start
	// Every proposal gets a buffer of its own: raft's log cache, the replicators
	// and the state machine all keep pointing at it (R5).
	data, err := entry.Encode(&logv1.Entry{
		Stamp:      int64(n.clock.Estimate()),
		Wall:       n.calendar.Wall(),
		Term:       term,
		Operations: b.Operations(),
	})
	if err != nil {
		n.fail(fmt.Errorf("%w: encode entry: %w", ErrProtected, err))
		p.fail(b, ErrClosed)
		return
	}
	// A stamp is good only in the term in which the clock counts on alone. The
	// leadership may have been lost and won again unnoticed (T3).
	if n.raft.CurrentTerm() != term {
		p.refuse(b)
		return
	}
	// What was applied before is no word of this one. One that was given up and comes
	// to be applied after all can still be taken for it: then two are in flight for once.
	select {
	case <-p.begun.wake:
	default:
	}
	one := &proposal{b, n.raft.Apply(data, enqueueMax), start, make(chan struct{})}
	p.proposals <- one
	p.last = one
	select {
	case <-p.begun.wake:
	case <-one.decided:
	}
}

// answer waits for the fate of each proposal and answers its waiters.
func (p *proposer) answer() {
	for one := range p.proposals {
		err := classify(one.future.Error())
		var results []*logv1.Result
		if err == nil {
			// The state machine's own word is in the response, not in the error (R3).
			results, err = one.future.Response().(*applied).unpack()
		}
		p.node.metrics.Proposed(one.batch.Len(), time.Since(one.since))
		p.settle(one.batch, results, err)
		close(one.decided)
	}
}

// settle answers the waiters of an entry.
func (p *proposer) settle(b *batch.Batch[*door.Item], results []*logv1.Result, err error) {
	n := p.node
	switch {
	case err == nil:
		if len(results) != b.Len() {
			err = fmt.Errorf("%w: %d results for %d operations", ErrProtected, len(results), b.Len())
			n.fail(err)
			p.fail(b, ErrOutcomeUnknown)
			return
		}
		n.door.AnswerAll(b.Waiters(), results)
	case errors.Is(err, outcome.ErrNotLeader):
		p.refuse(b)
	default:
		p.fail(b, err)
	}
}

// refuse lets nothing in until the leadership has been looked at anew, and sends
// what certainly was not proposed elsewhere. Taking it back into the queue would
// offer it to raft again and again.
func (p *proposer) refuse(b *batch.Batch[*door.Item]) {
	p.drop()
	p.node.doubt.nudge()
	for _, it := range b.Waiters() {
		p.node.reroute(it)
	}
}

// fail ends every waiter of an entry with the same error.
func (p *proposer) fail(b *batch.Batch[*door.Item], err error) {
	for _, it := range b.Waiters() {
		p.node.door.Answer(it, nil, err)
	}
}
