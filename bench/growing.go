package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

// Members are the indexes of those who are members, running or not.
func (n *Nodes) Members() []int { return n.indexes(false) }

// Outside are the indexes of those who are no members.
func (n *Nodes) Outside() []int { return n.indexes(true) }

func (n *Nodes) indexes(out bool) (list []int) {
	for i, p := range n.nodes {
		p.mu.Lock()
		if p.out == out {
			list = append(list, i)
		}
		p.mu.Unlock()
	}
	return list
}

func (p *process) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

// Join starts node i, which is no member, with an empty data directory and makes it a
// learner.
func (n *Nodes) Join(ctx context.Context, i int) error {
	p := n.nodes[i]
	if err := os.RemoveAll(p.data); err != nil {
		return fmt.Errorf("empty the directory of %s: %w", p.id, err)
	}
	p.set(func() { p.joins = true })
	if err := n.Start(i); err != nil {
		return err
	}
	err := n.change(ctx, func(ctx context.Context, c quorleasev1.ClusterClient) error {
		_, err := c.Add(ctx, &quorleasev1.ClusterAddRequest{Id: p.id, Peer: p.peer})
		return err
	})
	if err != nil {
		return fmt.Errorf("add %s: %w", p.id, err)
	}
	p.set(func() { p.out = false })
	return nil
}

// Promote gives node i a vote as soon as it has kept up for long enough.
func (n *Nodes) Promote(ctx context.Context, i int) error {
	err := n.change(ctx, func(ctx context.Context, c quorleasev1.ClusterClient) error {
		_, err := c.Promote(ctx, &quorleasev1.ClusterPromoteRequest{Id: n.ID(i)})
		return err
	})
	if err != nil {
		return fmt.Errorf("promote %s: %w", n.ID(i), err)
	}
	return nil
}

// exitRemoved is the exit code of a process that was removed, exitKilled what stands for
// that of one that a signal ended.
const exitRemoved, exitKilled = 4, -1

// Remove takes node i out. Its process ends soon; see Gone.
func (n *Nodes) Remove(ctx context.Context, i int) error {
	p, lost := n.nodes[i], false
	err := n.change(ctx, func(ctx context.Context, c quorleasev1.ClusterClient) error {
		_, err := c.Remove(ctx, &quorleasev1.ClusterRemoveRequest{Id: p.id})
		if lost && reasonOf(err) == "NODE_NOT_FOUND" {
			// It was the attempt whose answer got lost.
			return nil
		}
		lost = lost || err != nil && MayHaveHappened(err)
		return err
	})
	if err != nil {
		return fmt.Errorf("remove %s: %w", p.id, err)
	}
	p.set(func() { p.out = true })
	return nil
}

// Gone waits until the process of node i, which was removed, has ended as one should
// that was. One that was killed meanwhile is started again: it must find out.
func (n *Nodes) Gone(ctx context.Context, i int) error {
	p := n.nodes[i]
	for {
		p.mu.Lock()
		running, exited, code := p.cmd != nil, p.exited, p.code
		p.mu.Unlock()
		switch {
		case running:
			select {
			case <-exited:
			case <-ctx.Done():
				return fmt.Errorf("wait for the end of %s, which was removed: %w", p.id, ctx.Err())
			}
		case code == exitRemoved:
			return nil
		case code != exitKilled:
			return fmt.Errorf("%s was removed and ended with exit code %d, want %d", p.id, code, exitRemoved)
		default:
			if err := n.Start(i); err != nil {
				return err
			}
		}
	}
}

const (
	// changeMax is how long a node may take to make a change, and changePause lies
	// between two rounds over the nodes.
	changeMax   = 5 * time.Second
	changePause = 100 * time.Millisecond
)

// change asks one member after the other until the change is made, or ctx ends: a
// change is refused for as long as somebody it needs is away.
func (n *Nodes) change(ctx context.Context, ask func(context.Context, quorleasev1.ClusterClient) error) error {
	for {
		var last error
		for _, i := range n.Members() {
			if n.Pid(i) == 0 {
				continue
			}
			if last = n.changeAt(ctx, i, ask); last == nil {
				return nil
			}
		}
		if err := pause(ctx, changePause); err != nil {
			return errors.Join(last, err)
		}
	}
}

func (n *Nodes) changeAt(
	ctx context.Context, i int, ask func(context.Context, quorleasev1.ClusterClient) error,
) error {
	conn, err := n.Conn(i)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, changeMax)
	defer cancel()
	return ask(ctx, quorleasev1.NewClusterClient(conn))
}

// reasonOf is the reason that an error of the protocol gives, or empty.
func reasonOf(err error) string {
	for _, detail := range status.Convert(err).Details() {
		if why, ok := detail.(*errdetails.ErrorInfo); ok {
			return why.GetReason()
		}
	}
	return ""
}
