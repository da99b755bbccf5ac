// Package servertest has a node for tests of the servers: the real state machine
// without a log, a disk or peers, in time that the test moves.
package servertest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster"
	"github.com/quorlease/quorlease/cluster/escrow"
	"github.com/quorlease/quorlease/cluster/events"
	"github.com/quorlease/quorlease/cluster/overview"
	"github.com/quorlease/quorlease/cluster/queue"
	"github.com/quorlease/quorlease/cluster/retries"
	"github.com/quorlease/quorlease/cluster/usage"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// wall is the wall clock when authority time began: answers are always the same.
var wall = time.Date(2026, 10, 22, 8, 30, 0, 0, time.UTC)

// Node decides at once, by itself. It is safe for concurrent use.
type Node struct {
	// Ring has the node's events.
	Ring *events.Ring

	// revision is the machine's.
	revision atomic.Uint64
	overview *overview.Book

	mu      sync.Mutex
	machine *fsm.Machine
	index   uint64
	now     int64
	// boot counts reports of retries: each is of a process of its own.
	boot    uint64
	status  cluster.Status
	queues  []queue.ClassState
	fail    error
	panics  string
	holding bool
	held    []*cluster.Pending
	// cancelled counts calls of Cancel.
	cancelled int
	// submitted counts operations.
	submitted int
	last      *logv1.Operation
	// atOnce is the limit whose acquires Grant answers.
	atOnce string
}

// New returns the node of a formed cluster without limits.
func New() *Node {
	n := &Node{Ring: events.New(64, func() time.Time { return wall }), machine: fsm.New()}
	n.overview = overview.New(time.Now())
	n.Ring.Tell(n.overview.Happened)
	n.Apply(&logv1.Operation{Kind: &logv1.Operation_Form{Form: &logv1.Form{
		ClusterId: "0123456789abcdef0123456789abcdef",
	}}})
	n.status = cluster.Status{
		ClusterID: "0123456789abcdef0123456789abcdef", Self: "n1", Leader: "n1", Term: 3,
		Quorum: cluster.HasLeader, Ready: true,
		Nodes: []cluster.NodeStatus{
			{
				Name: "n1", Role: cluster.Voter, Healthy: true, Peer: "127.0.0.1:7201", GRPC: "127.0.0.1:7101",
				HTTP: "127.0.0.1:7301", Version: "1.2.3",
			},
			{Name: "n2", Role: cluster.Learner, Peer: "127.0.0.1:7202"},
		},
	}
	return n
}

// Apply applies one operation now.
func (n *Node) Apply(op *logv1.Operation) *logv1.Result {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.index++
	entry := &logv1.Entry{Stamp: n.now, Wall: wall.UnixNano() + n.now, Operations: []*logv1.Operation{op}}
	reports := overview.Look(n.machine, entry)
	results, _ := n.machine.Apply(n.index, entry)
	reports.Compare(n.machine)
	n.observe(op, results[0], reports)
	return results[0]
}

// observe keeps the overview as a node does. What was decided took no time.
func (n *Node) observe(op *logv1.Operation, result *logv1.Result, reports *overview.Reports) {
	now := time.Now()
	n.overview.Applied(now, now, reports)
	if decided := result.GetAcquire(); decided != nil {
		n.overview.Decided(now, op.GetAcquire(), decided, 0)
	}
	if revision := n.machine.Revision(); revision != n.revision.Swap(revision) {
		limits, _ := n.machine.Limits("")
		n.overview.Configure(limits)
	}
}

// Overview is what the node remembers of the last hour.
func (n *Node) Overview() *overview.Book { return n.overview }

// Advance moves authority time.
func (n *Node) Advance(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.now += int64(d)
}

// Fail makes every operation and every fresh read end with err; nil ends that.
func (n *Node) Fail(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fail = err
}

// Panic makes the next operation panic.
func (n *Node) Panic(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.panics = text
}

// AtOnce makes Grant answer the acquires of a limit; it leaves others to Submit.
func (n *Node) AtOnce(limit string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.atOnce = limit
}

// Grant answers what AtOnce named.
func (n *Node) Grant(p *cluster.Pending, _ *escrow.Room) *logv1.Result {
	n.mu.Lock()
	limit := n.atOnce
	n.mu.Unlock()
	if charges := p.Operation.GetAcquire().GetCharges(); limit == "" || charges[0].GetLimit() != limit {
		return nil
	}
	return n.Apply(p.Operation)
}

// Hold keeps operations that come in without an answer until Resume.
func (n *Node) Hold() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.holding = true
}

// Resume answers what was held, in its order.
func (n *Node) Resume() {
	n.mu.Lock()
	held := n.held
	n.held, n.holding = nil, false
	n.mu.Unlock()
	for _, p := range held {
		p.Done(n.Apply(p.Operation), nil)
	}
}

// Step answers what was held, in its order, and holds what comes in from then on.
func (n *Node) Step() {
	n.mu.Lock()
	held := n.held
	n.held = nil
	n.mu.Unlock()
	for _, p := range held {
		p.Done(n.Apply(p.Operation), nil)
	}
}

// Counts is how many operations came in, are held, and were cancelled.
func (n *Node) Counts() (submitted, held, cancelled int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.submitted, len(n.held), n.cancelled
}

// Last is the operation that came in last.
func (n *Node) Last() *logv1.Operation {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.last
}

// SetStatus changes what Status returns.
func (n *Node) SetStatus(s cluster.Status) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.status = s
}

// Status is the cluster as the test wants it seen.
func (n *Node) Status() cluster.Status {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.status
}

// SetQueues changes what Queues returns.
func (n *Node) SetQueues(list []queue.ClassState) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.queues = list
}

// Queues is what the test wants to wait, at every key.
func (n *Node) Queues(context.Context, string, string) []queue.ClassState {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.queues
}

// Usage is what one client was granted, as the query names it.
func (n *Node) Usage(_ context.Context, q usage.Query) usage.Answer {
	rows := []usage.Row{
		{
			Name: "red", Limit: "tenant", Dimension: "requests",
			Count: usage.Count{Grants: 3, Denials: 2, Granted: 6, Denied: 4},
		},
		{Limit: "tenant", Dimension: "requests", Count: usage.Count{Grants: 1, Granted: 1}, Other: true},
	}
	to := wall
	if q.End != 0 {
		to = time.Unix(q.End*3600, 0)
	}
	return usage.Answer{
		Rows: rows[:min(q.Top, len(rows))], From: to.Add(-time.Duration(q.Hours) * time.Hour).Truncate(time.Hour), To: to,
		Nodes: []string{"n1"}, Missing: []string{"n2"},
	}
}

// Submit answers p, or holds it.
func (n *Node) Submit(p *cluster.Pending) {
	n.mu.Lock()
	n.submitted++
	n.last = p.Operation
	fail, panics, holding := n.fail, n.panics, n.holding
	n.panics = ""
	if holding && fail == nil {
		n.held = append(n.held, p)
	}
	n.mu.Unlock()
	switch {
	case panics != "":
		panic(panics)
	case fail != nil:
		p.Done(nil, fail)
	case !holding:
		p.Done(n.Apply(p.Operation), nil)
	}
}

// Cancel ends p if it is held.
func (n *Node) Cancel(p *cluster.Pending) {
	n.mu.Lock()
	n.cancelled++
	i := slices.Index(n.held, p)
	if i >= 0 {
		n.held = slices.Delete(n.held, i, i+1)
	}
	n.mu.Unlock()
	if i >= 0 {
		p.Done(nil, context.Canceled)
	}
}

// Do submits and waits.
func (n *Node) Do(ctx context.Context, op *logv1.Operation, attempt uint32) (*logv1.Result, error) {
	return n.Await(ctx, &cluster.Pending{Operation: op, Attempt: attempt})
}

// Await submits and waits.
func (n *Node) Await(ctx context.Context, p *cluster.Pending) (*logv1.Result, error) {
	var result *logv1.Result
	var failed error
	done := make(chan struct{})
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

// View reads the machine now. Only a stale read works while the node fails.
func (n *Node) View(_ context.Context, stale bool, read func(*fsm.Machine, bucket.Instant)) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.fail != nil && !stale {
		return n.fail
	}
	read(n.machine, bucket.Instant(n.now))
	return nil
}

// CountTried counts at once, as the report of a single node would.
func (n *Node) CountTried(client string, tried retries.Tried) {
	n.mu.Lock()
	slice := n.now / int64(n.machine.SliceOf(client))
	n.boot++
	boot := n.boot
	n.mu.Unlock()
	n.Apply(&logv1.Operation{Kind: &logv1.Operation_ReportRetries{ReportRetries: &logv1.ReportRetries{
		Node: "n1", Boot: boot, Slices: []*logv1.ClientSlice{{
			Client: client, Slice: slice, Total: tried.Count.Total, Retries: tried.Count.Retries,
			Throttled: tried.Count.Throttled, Error: tried.Fault.Text, Errors: tried.Fault.Times,
		}},
	}}})
}

// Revision is that of the limits.
func (n *Node) Revision() uint64 { return n.revision.Load() }

// changed answers a change of the members: n2 is one and n3 waits to be.
func (n *Node) changed(name string) (cluster.Change, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.fail != nil:
		return cluster.Change{}, n.fail
	case name != "" && name != "n1" && name != "n2":
		return cluster.Change{}, fmt.Errorf("%w: %s", cluster.ErrUnknownMember, name)
	}
	return cluster.Change{Changed: name != "n1", Leader: n.status.Leader}, nil
}

// AddMember adds n3.
func (n *Node) AddMember(_ context.Context, name, _ string) (cluster.Change, error) {
	if name == "n3" {
		return cluster.Change{Changed: true}, nil
	}
	return n.changed(name)
}

// RemoveMember removes n2.
func (n *Node) RemoveMember(_ context.Context, name string) (cluster.Change, error) {
	return n.changed(name)
}

// Promote promotes n2.
func (n *Node) Promote(_ context.Context, name string) (cluster.Change, error) {
	return n.changed(name)
}

// Demote demotes n2.
func (n *Node) Demote(_ context.Context, name string) (cluster.Change, error) { return n.changed(name) }

// TransferLeadership makes n2 the leader.
func (n *Node) TransferLeadership(_ context.Context, name string) (cluster.Change, error) {
	return n.changed(name)
}
