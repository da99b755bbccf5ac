// Package clustertest runs clusters of real nodes inside one test: over TCP
// with real time, or in memory inside a testing/synctest bubble with virtual
// time. Their files are real.
package clustertest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/quorlease/quorlease/cluster"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// patience is how long Eventually waits.
const patience = 30 * time.Second

// Options change how a cluster is run. The zero value is a cluster over TCP.
type Options struct {
	// InMemory keeps connections in memory: the test runs in a bubble.
	InMemory bool
	// Dir is where the nodes' files are. Empty: a place of the test's own, which is removed
	// at its end.
	Dir string
	// Configure changes a node's configuration before each start.
	Configure func(name string, c *cluster.Config)
}

// Cluster is some nodes under test. It is for the test's own goroutine; the
// nodes are for any.
type Cluster struct {
	tb      testing.TB
	options Options
	// Board connects the nodes.
	Board *Board
	names []string
	// founders is how many of the names have formed the cluster.
	founders int
	dir      string
	peers    map[string]string
	nodes    map[string]*cluster.Node
	// wiped have lost what they had when the cluster formed.
	wiped map[string]bool
}

// New starts count nodes, named a, b, c and so on, and waits until they have
// formed a cluster and know a leader.
func New(tb testing.TB, count int, options Options) *Cluster {
	tb.Helper()
	c := &Cluster{
		tb: tb, options: options, Board: NewBoard(options.InMemory), dir: options.Dir,
		peers: make(map[string]string), nodes: make(map[string]*cluster.Node), wiped: make(map[string]bool),
	}
	if c.dir == "" {
		c.dir = place(tb, options.InMemory)
	}
	tb.Cleanup(c.Close)
	for i := range count {
		name := string(rune('a' + i))
		c.names = append(c.names, name)
		c.peers[name] = c.address(name)
	}
	c.founders = count
	for _, name := range c.names {
		c.Restart(name)
	}
	c.Eventually("a leader that every node knows", func() error {
		for _, name := range c.names {
			if s := c.nodes[name].Status(); !s.Ready || len(s.Nodes) != count {
				return fmt.Errorf("%s: %+v", name, s)
			}
		}
		return nil
	})
	return c
}

// address is where a node listens: a free port, or in memory its name.
func (c *Cluster) address(name string) string {
	c.tb.Helper()
	if c.options.InMemory {
		return name + ":1"
	}
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		c.tb.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// Names are the names of all nodes, in order.
func (c *Cluster) Names() []string { return slices.Clone(c.names) }

// Dir is a node's data directory.
func (c *Cluster) Dir(name string) string { return filepath.Join(c.dir, name) }

// Node is a node that runs.
func (c *Cluster) Node(name string) *cluster.Node {
	c.tb.Helper()
	n := c.nodes[name]
	if n == nil {
		c.tb.Fatalf("node %s does not run", name)
	}
	return n
}

// Config is the configuration that a node starts with.
func (c *Cluster) Config(name string) cluster.Config {
	config := cluster.DefaultConfig()
	config.ID, config.DataDir, config.Peer = name, c.Dir(name), c.peers[name]
	config.AdvertiseGRPC, config.AdvertiseHTTP, config.Version = name+":grpc", name+":http", "test"
	if slices.Index(c.names, name) < c.founders && !c.wiped[name] {
		config.BootstrapExpect = c.founders
	} else {
		config.Learner = true
	}
	for _, other := range c.names {
		if other != name {
			config.Join = append(config.Join, c.peers[other])
		}
	}
	config.Network = c.Board.For(name)
	// A test's disk may be nearly full.
	config.MinFreeBytes = 1
	if c.options.InMemory {
		// A host that is no loopback address.
		config.Insecure = true
		// The boot-time clock is not the bubble's.
		start := time.Now()
		config.Elapsed = func() time.Duration { return time.Since(start) }
	}
	if c.options.Configure != nil {
		c.options.Configure(name, &config)
	}
	return config
}

// Restart starts a node that does not run.
func (c *Cluster) Restart(name string) *cluster.Node {
	c.tb.Helper()
	n, err := cluster.Open(context.Background(), c.Config(name))
	if err != nil {
		c.tb.Fatalf("start %s: %v", name, err)
	}
	c.nodes[name] = n
	return n
}

// Stop closes a node in good order: a leader hands over.
func (c *Cluster) Stop(name string) {
	c.tb.Helper()
	if err := c.Node(name).Close(); err != nil {
		c.tb.Errorf("close %s: %v", name, err)
	}
	delete(c.nodes, name)
}

// Crash takes a node away without a word: its connections end first, so that it can
// hand nothing over.
func (c *Cluster) Crash(name string) {
	c.tb.Helper()
	c.Board.End(name)
	c.Stop(name)
}

// Isolate cuts a node off from all others.
func (c *Cluster) Isolate(name string) {
	for _, other := range c.names {
		if other != name {
			c.Board.Cut(name, other)
		}
	}
}

// Partition cuts every node of one side off from every other node.
func (c *Cluster) Partition(side ...string) {
	for _, x := range c.names {
		for _, y := range c.names {
			if x < y && slices.Contains(side, x) != slices.Contains(side, y) {
				c.Board.Cut(x, y)
			}
		}
	}
}

// Heal joins all nodes again.
func (c *Cluster) Heal() {
	for _, x := range c.names {
		for _, y := range c.names {
			if x < y {
				c.Board.Heal(x, y)
			}
		}
	}
}

// Leader waits until exactly one running node serves as the leader, and returns
// its name. among, where given, are the nodes to look at.
func (c *Cluster) Leader(among ...string) string {
	c.tb.Helper()
	if len(among) == 0 {
		among = c.names
	}
	leader := ""
	c.Eventually("a leader among "+fmt.Sprint(among), func() error {
		leader = ""
		for _, name := range among {
			n := c.nodes[name]
			if n == nil {
				continue
			}
			if !n.Leads() {
				continue
			}
			if leader != "" {
				return fmt.Errorf("%s and %s both lead", leader, name)
			}
			leader = name
		}
		if leader == "" {
			return errors.New("nobody leads")
		}
		return nil
	})
	return leader
}

// Followers are the running nodes but for the leader.
func (c *Cluster) Followers() []string {
	c.tb.Helper()
	leader := c.Leader()
	return slices.DeleteFunc(c.Running(), func(name string) bool { return name == leader })
}

// Running are the names of the nodes that run.
func (c *Cluster) Running() []string {
	return slices.DeleteFunc(c.Names(), func(name string) bool { return c.nodes[name] == nil })
}

// Eventually asks again until check returns nil, and fails the test with what it
// said last when that takes too long.
func (c *Cluster) Eventually(what string, check func() error) {
	c.tb.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-ticker.C:
		case <-deadline.C:
			c.tb.Fatalf("waited %s for %s: %v", patience, what, err)
		}
	}
}

// State is what one node has applied.
type State struct {
	Index, Hash uint64
	Now         bucket.Instant
}

// State reads a node's state as it is.
func (c *Cluster) State(name string) State {
	c.tb.Helper()
	var s State
	err := c.Node(name).View(context.Background(), true, func(m *fsm.Machine, _ bucket.Instant) {
		s = State{Index: m.Index(), Hash: m.Hash(), Now: m.Now()}
	})
	if err != nil {
		c.tb.Fatalf("read %s: %v", name, err)
	}
	return s
}

// RequireSameState waits until all running nodes have applied the same entry,
// and fails the test if they differ then (G9).
func (c *Cluster) RequireSameState() State {
	c.tb.Helper()
	var want State
	c.Eventually("all nodes at the same index", func() error {
		running := c.Running()
		want = c.State(running[0])
		for _, name := range running[1:] {
			got := c.State(name)
			if got.Index != want.Index {
				return fmt.Errorf("%s is at %d, %s at %d", name, got.Index, running[0], want.Index)
			}
			if got != want {
				c.tb.Fatalf("at entry %d %s has %+v, %s has %+v", got.Index, name, got, running[0], want)
			}
		}
		return nil
	})
	return want
}

// Close stops every node that runs.
func (c *Cluster) Close() {
	c.tb.Helper()
	for _, name := range c.Running() {
		c.Stop(name)
	}
}
