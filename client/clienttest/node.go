package clienttest

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/test/bufconn"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/api/server"
	"github.com/quorlease/quorlease/cluster"
	"github.com/quorlease/quorlease/cluster/overview"
	"github.com/quorlease/quorlease/cluster/queue"
	"github.com/quorlease/quorlease/cluster/retries"
	"github.com/quorlease/quorlease/cluster/usage"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// node is one node: a server.Node, and what serves it. What changes is guarded by
// the cluster's mutex.
type node struct {
	unchanged
	cluster *Cluster
	index   int

	// advertised is the address that members are told. Empty: it is no member.
	advertised string

	mode   mode
	down   bool
	closed bool
	// thawed is closed where the node is not frozen.
	thawed chan struct{}
	frozen bool
	// served is closed where the node does not hang; those that look wait for it.
	served chan struct{}
	// pending are operations without an answer, with the timer that will give one,
	// or nil where the node hangs.
	pending map[*cluster.Pending]*time.Timer
	// waiting is since when acquires of them wait that were denied.
	waiting map[*cluster.Pending]time.Time
	conns   map[*conn]struct{}
	counts  Counts
	// stock is what it may grant from memory, by limit.
	stock map[string]int64

	server   *server.Server
	listener *bufconn.Listener
	draining bool
	serving  sync.WaitGroup
}

func newNode(c *Cluster, index int) *node {
	n := &node{
		cluster: c, index: index, pending: map[*cluster.Pending]*time.Timer{}, conns: map[*conn]struct{}{},
		waiting: map[*cluster.Pending]time.Time{},
		thawed:  make(chan struct{}), served: make(chan struct{}),
	}
	close(n.thawed)
	close(n.served)
	n.advertised = n.address()
	return n
}

// start serves.
func (n *node) start() error {
	config := server.DefaultConfig()
	config.Node, config.Events, config.Identify = n, n.cluster.state.Ring, server.Anyone
	config.DrainMax = 100 * time.Millisecond
	s, err := server.New(config)
	if err != nil {
		return err
	}
	l := bufconn.Listen(1 << 18)
	n.cluster.mu.Lock()
	n.server, n.listener, n.draining = s, l, false
	n.cluster.mu.Unlock()
	n.serving.Go(func() {
		// It ends when the server is closed, and has nothing else to say.
		_ = s.Serve(l)
	})
	return nil
}

// stop ends the node for good.
func (n *node) stop() {
	c := n.cluster
	c.mu.Lock()
	n.closed = true
	n.modeLocked(serving)
	n.thawLocked()
	s := n.server
	c.mu.Unlock()
	n.resume()
	n.cut()
	if s != nil {
		_ = s.Close()
	}
	n.serving.Wait()
}

// drain begins an orderly end.
func (n *node) drain() {
	n.cluster.mu.Lock()
	n.draining = true
	s := n.server
	n.cluster.mu.Unlock()
	s.Drain()
}

// restart serves again where the server was closing.
func (n *node) restart() error {
	n.cluster.mu.Lock()
	draining, s := n.draining, n.server
	n.cluster.mu.Unlock()
	if !draining {
		return nil
	}
	n.cut()
	_ = s.Close()
	n.serving.Wait()
	return n.start()
}

func (n *node) modeLocked(m mode) {
	switch hung := n.mode == hanging; {
	case m == hanging && !hung:
		n.served = make(chan struct{})
	case m != hanging && hung:
		close(n.served)
	}
	n.mode = m
}

// aliveLocked says whether the others can count on it.
func (n *node) aliveLocked() bool { return !n.down && !n.frozen && !n.closed }

// Status is how the cluster looks from here.
func (n *node) Status() cluster.Status {
	n.cluster.mu.Lock()
	n.counts.Statuses++
	n.cluster.mu.Unlock()
	return n.cluster.status(n)
}

// Revision is that of the limits.
func (n *node) Revision() uint64 { return n.cluster.state.Revision() }

// CountTried counts in the state that the nodes share.
func (n *node) CountTried(client string, tried retries.Tried) {
	n.cluster.state.CountTried(client, tried)
}

// Submit answers at once, or after the delay.
func (n *node) Submit(p *cluster.Pending) {
	c := n.cluster
	c.mu.Lock()
	n.counts.Operations++
	if p.Operation.GetAcquire() != nil {
		n.counts.Acquires++
	}
	wait := c.delay
	if patience := time.Until(p.Deadline); !p.Deadline.IsZero() {
		wait = min(wait, patience)
	}
	switch {
	case n.closed || c.quorumLocked(n) != cluster.HasLeader:
	case n.mode == hanging:
		n.pending[p] = nil
		c.mu.Unlock()
		return
	case wait > 0:
		n.pending[p] = time.AfterFunc(wait, func() {
			if n.takeBack(p) {
				n.answer(p)
			}
		})
		c.mu.Unlock()
		return
	}
	c.mu.Unlock()
	n.answer(p)
}

// answer decides an operation now. Nobody else has it.
func (n *node) answer(p *cluster.Pending) {
	c := n.cluster
	c.mu.Lock()
	err := n.refusalLocked()
	if n.mode == hanging && err == nil {
		n.pending[p] = nil
		c.mu.Unlock()
		return
	}
	unknown := n.mode == unknowing
	c.mu.Unlock()
	switch {
	case err != nil:
		n.forget(p)
		p.Done(nil, err)
	case !p.Deadline.IsZero() && !time.Now().Before(p.Deadline):
		n.forget(p)
		p.Done(nil, cluster.ErrDeadline)
	case unknown:
		c.commit(p.Operation)
		p.Done(nil, cluster.ErrOutcomeUnknown)
	case p.MaxWait > 0:
		n.queue(p)
	default:
		p.Done(c.commit(p.Operation), nil)
	}
}

// refusalLocked is why the node can't decide.
func (n *node) refusalLocked() error {
	switch {
	case n.closed:
		return cluster.ErrClosed
	case n.cluster.quorumLocked(n) == cluster.NoQuorum:
		return cluster.ErrNoQuorum
	case n.cluster.quorumLocked(n) == cluster.NoLeader:
		return cluster.ErrNoLeader
	}
	return nil
}

// takeBack takes an operation that has no answer. It says no where somebody else
// has done so.
func (n *node) takeBack(p *cluster.Pending) bool {
	n.cluster.mu.Lock()
	defer n.cluster.mu.Unlock()
	timer, waits := n.pending[p]
	delete(n.pending, p)
	delete(n.waiting, p)
	if timer != nil {
		timer.Stop()
	}
	return waits
}

// resume answers what hangs, and what waits for nothing, in any order.
func (n *node) resume() {
	n.cluster.mu.Lock()
	var held []*cluster.Pending
	for p, timer := range n.pending {
		_, queued := n.waiting[p]
		if timer == nil || n.closed || queued && n.refusalLocked() != nil {
			held = append(held, p)
		}
	}
	n.cluster.mu.Unlock()
	for _, p := range held {
		if n.takeBack(p) {
			n.answer(p)
		}
	}
}

// Cancel ends p if it has no answer.
func (n *node) Cancel(p *cluster.Pending) {
	n.cluster.mu.Lock()
	n.counts.Cancelled++
	n.cluster.mu.Unlock()
	if n.takeBack(p) {
		p.Done(nil, context.Canceled)
	}
}

// Queues are empty: nothing waits here.
func (n *node) Queues(context.Context, string, string) []queue.ClassState { return nil }

// Usage is nothing: no node keeps a book.
func (n *node) Usage(context.Context, usage.Query) usage.Answer { return usage.Answer{} }

// Overview is what the cluster remembers: that of its one state.
func (n *node) Overview() *overview.Book { return n.cluster.state.Overview() }

// Do submits and waits.
func (n *node) Do(ctx context.Context, op *logv1.Operation, attempt uint32) (*logv1.Result, error) {
	return n.Await(ctx, &cluster.Pending{Operation: op, Attempt: attempt})
}

// Await submits and waits.
func (n *node) Await(ctx context.Context, p *cluster.Pending) (*logv1.Result, error) {
	var result *logv1.Result
	var failed error
	done := make(chan struct{})
	p.Deadline, _ = ctx.Deadline()
	p.Done = func(r *logv1.Result, err error) {
		result, failed = r, err
		close(done)
	}
	n.Submit(p)
	select {
	case <-done:
	case <-ctx.Done():
		n.Cancel(p)
		<-done
		failed = ctx.Err()
	}
	if refused := result.GetRefusal(); refused != nil {
		return nil, &fsm.Refused{Refusal: refused}
	}
	return result, failed
}

// View reads the state, at once where stale; else only where the node could
// decide.
func (n *node) View(ctx context.Context, stale bool, read func(*fsm.Machine, bucket.Instant)) error {
	c := n.cluster
	c.mu.Lock()
	n.counts.Looks++
	served, wait, err := n.served, c.delay, n.refusalLocked()
	c.mu.Unlock()
	if !stale {
		if err != nil {
			return err
		}
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		select {
		case <-served:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	c.move()
	return c.state.View(ctx, true, read)
}
