package real

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/quorlease/quorlease/api/limitsfile"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/bench"
	"github.com/quorlease/quorlease/bench/check"
	"github.com/quorlease/quorlease/bench/hosts"
)

// stopWait is how long a node may take to stop.
const stopWait = 10 * time.Second

// startNodes starts the nodes and waits until they are well and have the limits.
func (s *Stage) startNodes(ctx context.Context, count int, limits string) (err error) {
	c := bench.NodesConfig{
		Binary: s.config.Binary, Dir: s.config.Dir, Count: count, Log: s.log,
		// The whole log is read in the end; snapshots are taken all the same.
		Args: []string{"--trailing-logs", "10000000"},
	}
	if s.config.Apart {
		if s.network, err = hosts.Open(count + 1); err != nil {
			return err
		}
		c.Host, c.Wrap, c.Dial = s.network.Address, s.network.Wrap, s.network.Dial(s.here())
		c.Args = append(c.Args, "--insecure")
	}
	if s.nodes, err = bench.StartNodes(c); err != nil {
		return err
	}
	if err := s.nodes.Healthy(ctx); err != nil {
		return err
	}
	request, err := limitsfile.Parse([]byte(limits))
	if err != nil {
		return fmt.Errorf("read the limits: %w", err)
	}
	conn, err := s.nodes.Conn(0)
	if err != nil {
		return err
	}
	defer conn.Close()
	// On a busy machine the first leader may not stay.
	var last error
	if err := until(ctx, "a leader to take the limits", func() bool {
		_, last = quorleasev1.NewLimitsClient(conn).Apply(ctx, request)
		return last == nil
	}); err != nil {
		return errors.Join(err, last)
	}
	// A node that has not heard of a limit finds none that fits.
	_, _, err = s.nodes.SameState(ctx)
	return err
}

// here is the host of everything that is no node.
func (s *Stage) here() int { return s.setting.Nodes }

func (s *Stage) endpoints() (all []string) {
	for i := range s.nodes.Len() {
		all = append(all, s.nodes.GRPC(i))
	}
	return all
}

// KillNode ends a node without warning.
func (s *Stage) KillNode(node int) error { return s.nodes.Signal(node, syscall.SIGKILL) }

// StartNode starts a node that was ended and waits until it answers.
func (s *Stage) StartNode(ctx context.Context, node int) error {
	if err := s.nodes.Start(node); err != nil {
		return err
	}
	return until(ctx, fmt.Sprintf("node %s to answer", s.nodes.ID(node)), func() bool {
		_, err := s.nodes.Status(ctx, node)
		return err == nil
	})
}

// Leader is the node that leads.
func (s *Stage) Leader(ctx context.Context) (int, error) { return s.nodes.Leader(ctx) }

// Cut takes a node's connections with the other nodes away; gateways go on to reach it.
// It needs Config.Apart.
func (s *Stage) Cut(node int) error { return s.part(node, (*hosts.Network).Part) }

// Heal undoes Cut.
func (s *Stage) Heal(node int) error { return s.part(node, (*hosts.Network).Mend) }

func (s *Stage) part(node int, do func(*hosts.Network, int, ...int) error) error {
	if s.network == nil {
		return fmt.Errorf("cut a node off: %w: all nodes are on one host", hosts.ErrUnavailable)
	}
	var others []int
	for i := range s.nodes.Len() {
		if i != node {
			others = append(others, i)
		}
	}
	return do(s.network, node, others...)
}

// Healthy waits until all nodes are well, those that were killed and started again too.
func (s *Stage) Healthy(ctx context.Context) error { return s.nodes.Healthy(ctx) }

// Check holds all nodes to one state (G9) and their logs to G1 and G2. It ends them; all
// have to run and be well. The error says what is broken.
func (s *Stage) Check(ctx context.Context) error {
	if _, _, err := s.nodes.SameState(ctx); err != nil {
		return fmt.Errorf("G9: %w", err)
	}
	for i := range s.nodes.Len() {
		if err := s.nodes.Stop(i, stopWait); err != nil {
			return err
		}
	}
	var broken []error
	for i := range s.nodes.Len() {
		history, err := check.Log(s.nodes.Data(i))
		if err != nil {
			return err
		}
		for problem := range slices.Values(history.Problems()) {
			broken = append(broken, fmt.Errorf("the log of %s: %s", s.nodes.ID(i), problem))
		}
	}
	return errors.Join(broken...)
}

// until waits for a condition.
func until(ctx context.Context, what string, holds func() bool) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, ctx.Err())
		}
	}
	return nil
}
