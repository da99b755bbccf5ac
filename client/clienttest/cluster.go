// Package clienttest is an authority in memory, for tests of clients.
//
// It is the real servers over the real state machine, without a log, a disk or a
// socket, on connections that a test can delay, freeze and cut. Its time is that
// of time.Now, so that a test in a bubble of testing/synctest moves it. Nothing in
// it runs while nobody asks, but for what keeps the shares of sessions that refresh.
//
// What it leaves out: retry budgets are not enforced, an election takes no time
// unless NoLeader makes one, and acquires that wait do so side by side, each until
// its own denial says, in no order.
package clienttest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/quorlease/quorlease/api/limitsfile"
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server/servertest"
	"github.com/quorlease/quorlease/cluster"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// NodesMax is how many nodes a Cluster may have.
const NodesMax = 9

// Cluster is nodes that share one state. Nodes count from 0. Methods that take
// nodes mean all of them where none is given. It is safe for concurrent use.
type Cluster struct {
	// state has the machine; its own time is moved by Cluster only.
	state *servertest.Node
	nodes []*node

	mu sync.Mutex
	// moved is when the state's time was last moved, stamped when an entry was applied.
	moved, stamped time.Time
	leader         int
	term           uint64
	// clusterID is what the nodes say, where the test has said so.
	clusterID string
	delay     time.Duration
}

// New starts a cluster of 1 to NodesMax nodes, node 0 its leader. It has no
// limits.
func New(nodes int) (*Cluster, error) {
	if nodes < 1 || nodes > NodesMax {
		return nil, fmt.Errorf("nodes: %d is out of range 1..%d", nodes, NodesMax)
	}
	now := time.Now()
	c := &Cluster{state: servertest.New(), moved: now, stamped: now, term: 1}
	for i := range nodes {
		c.nodes = append(c.nodes, newNode(c, i))
	}
	for _, n := range c.nodes {
		if err := n.start(); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	return c, nil
}

// Close ends every node and waits for their goroutines.
func (c *Cluster) Close() error {
	for _, n := range c.nodes {
		n.stop()
	}
	c.state.Ring.Close()
	return nil
}

// Endpoints are the addresses of the nodes, which only Dial knows.
func (c *Cluster) Endpoints() []string {
	addresses := make([]string, len(c.nodes))
	for i, n := range c.nodes {
		addresses[i] = n.address()
	}
	return addresses
}

// Dial connects to a node as net.Dialer would: it fails at once where the node is
// down, and hangs until ctx ends where it is frozen.
func (c *Cluster) Dial(ctx context.Context, address string) (net.Conn, error) {
	for _, n := range c.nodes {
		if n.address() == address {
			return n.dial(ctx)
		}
	}
	return nil, fmt.Errorf("dial %s: no such host", address)
}

// Limits adds and changes limits, as a limits file would.
func (c *Cluster) Limits(limits ...*quorleasev1.Limit) error {
	return c.apply(&quorleasev1.LimitsApplyRequest{Limits: limits})
}

// LimitsFile applies a limits file.
func (c *Cluster) LimitsFile(text string) error {
	request, err := limitsfile.Parse([]byte(text))
	if err != nil {
		return fmt.Errorf("limits file: %w", err)
	}
	return c.apply(request)
}

func (c *Cluster) apply(request *quorleasev1.LimitsApplyRequest) error {
	limits, err := limitsfile.ResolveAll(request)
	if err != nil {
		return fmt.Errorf("limits: %w", err)
	}
	result := c.commit(&logv1.Operation{Kind: &logv1.Operation_ApplyLimits{ApplyLimits: limits}})
	if refused := result.GetRefusal(); refused != nil {
		return &fsm.Refused{Refusal: refused}
	}
	return nil
}

// View calls read with the state and authority time as they are now.
func (c *Cluster) View(read func(*fsm.Machine, bucket.Instant)) {
	c.move()
	// A stale read is never refused.
	_ = c.state.View(context.Background(), true, read)
}

// Advance moves authority time ahead of the clock.
func (c *Cluster) Advance(d time.Duration) { c.state.Advance(d) }

// commit applies an operation at the time that it is.
func (c *Cluster) commit(op *logv1.Operation) *logv1.Result {
	c.mu.Lock()
	c.moveLocked()
	c.stamped = c.moved
	c.mu.Unlock()
	return c.state.Apply(op)
}

// move lets the time pass that has passed.
func (c *Cluster) move() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.moveLocked()
}

// moveLocked is move. While somebody decides there is a leader, who stamps an entry each
// second. It has to be called before that changes.
func (c *Cluster) moveLocked() {
	now := time.Now()
	decides := slices.ContainsFunc(c.nodes, func(n *node) bool { return c.quorumLocked(n) == cluster.HasLeader })
	for decides && now.Sub(c.stamped) > time.Second {
		c.stamped = c.stamped.Add(time.Second)
		c.state.Advance(c.stamped.Sub(c.moved))
		c.moved = c.stamped
		c.state.Tick()
	}
	c.state.Advance(now.Sub(c.moved))
	c.moved = now
	if !decides {
		// Whoever leads next stamps from then on.
		c.stamped = now
	}
}

// status is the cluster as a node sees it.
func (c *Cluster) status(self *node) cluster.Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	status := c.state.Status()
	status.Self, status.Term, status.Nodes = self.id(), c.term, nil
	if c.clusterID != "" {
		status.ClusterID = c.clusterID
	}
	for _, n := range c.nodes {
		if n.advertised == "" {
			continue
		}
		status.Nodes = append(status.Nodes, cluster.NodeStatus{
			RaftID: n.id() + ".1", Name: n.id(), Role: cluster.Voter, Healthy: n.aliveLocked(),
			Peer: n.id() + ".test:7201", GRPC: n.advertised, HTTP: n.id() + ".test:7301", Version: "0.0.0",
		})
	}
	status.Quorum = c.quorumLocked(self)
	status.Leader, status.Ready = "", status.Quorum == cluster.HasLeader
	if status.Ready {
		status.Leader = c.nodes[c.leader].id()
	}
	return status
}

// quorumLocked says whether a node can decide: where the test does not say, it
// can while it and its like are a majority.
func (c *Cluster) quorumLocked(self *node) cluster.Quorum {
	alive := 0
	for _, n := range c.nodes {
		if n.aliveLocked() && n.mode != noQuorum {
			alive++
		}
	}
	switch {
	case self.mode == noQuorum, 2*alive <= len(c.nodes):
		return cluster.NoQuorum
	case self.mode == noLeader:
		return cluster.NoLeader
	}
	return cluster.HasLeader
}

// electLocked makes the first node that can lead the leader, where the leader
// can't.
func (c *Cluster) electLocked() {
	can := func(n *node) bool { return n.aliveLocked() && n.mode != noQuorum }
	if can(c.nodes[c.leader]) {
		return
	}
	for i, n := range c.nodes {
		if can(n) {
			c.leader = i
			c.term++
			return
		}
	}
}

func (n *node) id() string { return "n" + strconv.Itoa(n.index+1) }

func (n *node) address() string { return n.id() + ".test:7101" }
