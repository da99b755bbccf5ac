package clustertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/quorlease/quorlease/cluster"
)

// Wait starts one more node, named after the last, which waits to be added.
func (c *Cluster) Wait() string {
	c.tb.Helper()
	name := string(rune('a' + len(c.names)))
	c.names = append(c.names, name)
	c.peers[name] = c.address(name)
	c.Restart(name)
	return name
}

// Peer is a node's peer address.
func (c *Cluster) Peer(name string) string { return c.peers[name] }

// Moved gives a node that does not run another peer address.
func (c *Cluster) Moved(name string) { c.peers[name] = c.address(name + "x") }

// Wipe empties the data directory of a node that does not run, which waits to be
// added when it is started again.
func (c *Cluster) Wipe(name string) {
	c.tb.Helper()
	if err := os.RemoveAll(c.Dir(name)); err != nil {
		c.tb.Fatal(err)
	}
	c.wiped[name] = true
}

// Change asks a node for a change of the members, again while it can't say, until it is
// made.
func (c *Cluster) Change(what string, change func(context.Context) (cluster.Change, error)) cluster.Change {
	c.tb.Helper()
	var made cluster.Change
	c.Eventually(what, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		var err error
		made, err = change(ctx)
		if errors.Is(err, cluster.ErrChangeRefused) || errors.Is(err, cluster.ErrUnknownMember) {
			c.tb.Fatalf("%s: %v", what, err)
		}
		return err
	})
	return made
}

// Grow starts one more node and makes it a learner, or with vote a voter, which takes
// the ten seconds that one must keep up for. It returns its name.
func (c *Cluster) Grow(vote bool) string {
	c.tb.Helper()
	name := c.Wait()
	c.Add(name)
	if vote {
		c.Change("promote "+name, func(ctx context.Context) (cluster.Change, error) {
			return c.any().Promote(ctx, name)
		})
	}
	return name
}

// Add makes a learner of a node that waits.
func (c *Cluster) Add(name string) {
	c.tb.Helper()
	c.Change("add "+name, func(ctx context.Context) (cluster.Change, error) {
		return c.any().AddMember(ctx, name, c.Peer(name))
	})
	c.Eventually(name+" among the members", func() error {
		if s := c.Node(name).Status(); !s.Ready {
			return fmt.Errorf("%s: %+v", name, s)
		}
		return nil
	})
}

// Remove takes a member out, and waits until it has stopped where it runs.
func (c *Cluster) Remove(name string) {
	c.tb.Helper()
	c.Change("remove "+name, func(ctx context.Context) (cluster.Change, error) {
		return c.any().RemoveMember(ctx, name)
	})
	gone := c.nodes[name]
	if gone == nil {
		return
	}
	c.Eventually(name+" to stop", func() error {
		select {
		case <-gone.Done():
			return nil
		default:
			return errors.New("it goes on")
		}
	})
	if !errors.Is(gone.Err(), cluster.ErrRemoved) {
		c.tb.Fatalf("%s stopped with %v, want %v", name, gone.Err(), cluster.ErrRemoved)
	}
	delete(c.nodes, name)
}

// any is a node that runs.
func (c *Cluster) any() *cluster.Node {
	c.tb.Helper()
	return c.Node(c.Running()[0])
}

// Forget notes that a node has stopped by itself.
func (c *Cluster) Forget(name string) { delete(c.nodes, name) }
