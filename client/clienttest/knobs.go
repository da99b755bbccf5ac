package clienttest

import "time"

// mode is what a node does with operations.
type mode int

const (
	serving mode = iota
	// hanging: it keeps them and says nothing.
	hanging
	// noLeader and noQuorum: it says so.
	noLeader
	noQuorum
	// unknowing: it does them and says that it does not know.
	unknowing
)

// Serve ends what Hang, NoLeader, NoQuorum and Unknown began. What was kept is
// answered: done where its caller still waits, else late.
func (c *Cluster) Serve(nodes ...int) { c.become(serving, nodes) }

// Hang makes nodes keep operations without an answer. They still answer for their
// status.
func (c *Cluster) Hang(nodes ...int) { c.become(hanging, nodes) }

// NoLeader makes nodes answer NO_LEADER, as in an election.
func (c *Cluster) NoLeader(nodes ...int) { c.become(noLeader, nodes) }

// NoQuorum makes nodes answer NO_QUORUM, as if cut off from the others. The
// others have a quorum while they are a majority.
func (c *Cluster) NoQuorum(nodes ...int) { c.become(noQuorum, nodes) }

// Unknown makes nodes do what they are asked and answer OUTCOME_UNKNOWN.
func (c *Cluster) Unknown(nodes ...int) { c.become(unknowing, nodes) }

func (c *Cluster) become(m mode, nodes []int) {
	for _, n := range c.pick(nodes) {
		c.mu.Lock()
		c.moveLocked()
		n.modeLocked(m)
		c.electLocked()
		c.mu.Unlock()
		if m != hanging {
			n.resume()
		}
	}
}

// Delay makes every operation take d, on every node. A caller that has less
// patience gets its answer when that ends.
func (c *Cluster) Delay(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.delay = d
}

// SetLeader makes a node the leader.
func (c *Cluster) SetLeader(i int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leader != i {
		c.leader = i
		c.term++
	}
}

// Leader is the index of the leader, whether it is alive or not.
func (c *Cluster) Leader() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leader
}

// Advertise changes the address that the nodes tell of a node, which serves at its
// own all the same. Empty: they tell of no such node.
func (c *Cluster) Advertise(i int, address string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes[i].advertised = address
}

// SetClusterID makes the nodes another cluster's: 32 hex digits.
func (c *Cluster) SetClusterID(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clusterID = id
}

// Down kills nodes: their connections are cut, and new ones refused. Where the
// rest is a majority it has a leader at once, else it answers NO_QUORUM.
func (c *Cluster) Down(nodes ...int) {
	for _, n := range c.pick(nodes) {
		c.mu.Lock()
		c.moveLocked()
		n.down = true
		c.electLocked()
		c.mu.Unlock()
		n.cut()
	}
}

// Freeze makes nodes black holes: what is sent to them, or dialled, goes nowhere.
func (c *Cluster) Freeze(nodes ...int) {
	for _, n := range c.pick(nodes) {
		c.mu.Lock()
		c.moveLocked()
		n.freezeLocked()
		c.electLocked()
		c.mu.Unlock()
	}
}

// Drain makes nodes close in an orderly way: they answer what they have, end their
// sessions and refuse what comes.
func (c *Cluster) Drain(nodes ...int) {
	for _, n := range c.pick(nodes) {
		n.drain()
	}
}

// Up brings nodes back that are down, frozen or closing, with the state that there
// is. It returns when they can be dialled.
func (c *Cluster) Up(nodes ...int) error {
	for _, n := range c.pick(nodes) {
		if err := n.restart(); err != nil {
			return err
		}
		c.mu.Lock()
		c.moveLocked()
		n.down = false
		n.thawLocked()
		c.electLocked()
		c.mu.Unlock()
	}
	return nil
}

// Counts is what arrived at a node since it was made.
type Counts struct {
	// Dials are attempts to connect, those included that failed.
	Dials int
	// Operations are all that ask for a decision, of which Acquires are acquires.
	Operations, Acquires int
	// Looks are peeks and other reads, Statuses are questions for its status.
	Looks, Statuses int
	// Cancelled are operations whose callers left.
	Cancelled int
	// Connections are those that are open.
	Connections int
}

// Counts says what arrived at nodes, together.
func (c *Cluster) Counts(nodes ...int) (sum Counts) {
	picked := c.pick(nodes)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range picked {
		sum.Dials += n.counts.Dials
		sum.Operations += n.counts.Operations
		sum.Acquires += n.counts.Acquires
		sum.Looks += n.counts.Looks
		sum.Statuses += n.counts.Statuses
		sum.Cancelled += n.counts.Cancelled
		sum.Connections += len(n.conns)
	}
	return sum
}

func (c *Cluster) pick(nodes []int) []*node {
	if len(nodes) == 0 {
		return c.nodes
	}
	picked := make([]*node, len(nodes))
	for i, index := range nodes {
		picked[i] = c.nodes[index]
	}
	return picked
}
