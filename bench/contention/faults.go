package contention

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/quorlease/quorlease/bench"
	"github.com/quorlease/quorlease/bench/report"
)

// Faults are what is done to the nodes, counted from the beginning of the measured
// part. The zero value is nothing.
type Faults struct {
	// KillLeaderEvery kills the leader again and again; it comes back soon after.
	KillLeaderEvery time.Duration
	// StopNode, 1 to 3, is told to stop at StopNodeAt and stays away. 0: none.
	StopNode   int
	StopNodeAt time.Duration
	// LoseQuorum kills a majority at LoseQuorumAt and starts it again after
	// LoseQuorumFor.
	LoseQuorum                  bool
	LoseQuorumAt, LoseQuorumFor time.Duration
}

// Any says whether there is one.
func (f *Faults) Any() bool { return f.KillLeaderEvery > 0 || f.StopNode > 0 || f.LoseQuorum }

const (
	// shortestKill leaves time for an election between two kills.
	shortestKill = 500 * time.Millisecond
	// backAfterMost is how long a killed leader stays away at most.
	backAfterMost = 2 * time.Second
	// leaderWait bounds the search for a leader to kill.
	leaderWait = 10 * time.Second
	// stopWait is how long a node may take to stop when told to.
	stopWait = 15 * time.Second
)

func (f *Faults) problems(c *Config) (errs []error) {
	inside := func(flag string, at time.Duration) {
		if at < 0 || at >= c.Length {
			errs = append(errs, fmt.Errorf("--%s %v is outside 0s to --length %v", flag, at, c.Length))
		}
	}
	if f.KillLeaderEvery != 0 && f.KillLeaderEvery < shortestKill {
		errs = append(errs, fmt.Errorf("--kill-leader-every %v is shorter than %v", f.KillLeaderEvery, shortestKill))
	}
	if f.StopNode < 0 || f.StopNode > Nodes {
		errs = append(errs, fmt.Errorf("--stop-node %d is outside 1 to %d", f.StopNode, Nodes))
	}
	if !f.Any() {
		return errs
	}
	if len(c.Endpoints) > 0 {
		errs = append(errs, errors.New("--endpoints names nodes that are not this run's: it does nothing to them"))
	}
	if c.Rounds != 1 {
		errs = append(errs, fmt.Errorf("--rounds %d: with a fault there is one round", c.Rounds))
	}
	if f.KillLeaderEvery >= c.Length {
		errs = append(errs, fmt.Errorf("--kill-leader-every %v is not shorter than --length %v: none would be killed",
			f.KillLeaderEvery, c.Length))
	}
	if f.StopNode > 0 {
		inside("stop-node", f.StopNodeAt)
	}
	if f.LoseQuorum {
		inside("lose-quorum-at", f.LoseQuorumAt)
		if f.LoseQuorumFor <= 0 {
			errs = append(errs, fmt.Errorf("--lose-quorum-for %v is not positive", f.LoseQuorumFor))
		}
	}
	return errs
}

// step is one thing to do at a time.
type step struct {
	at time.Duration
	do func(ctx context.Context) (what string, err error)
}

// saboteur does it. It is for one goroutine.
type saboteur struct {
	nodes *bench.Nodes
	// stopped is the index of the node that stays away, -1 for none.
	stopped int
	killed  []int
	done    []report.Fault
	failed  error
}

func newSaboteur(nodes *bench.Nodes) *saboteur { return &saboteur{nodes: nodes, stopped: -1} }

// plan lists the steps in the order of their times.
func (s *saboteur) plan(f *Faults, length time.Duration) []step {
	var steps []step
	if every := f.KillLeaderEvery; every > 0 {
		for at := every; at < length; at += every {
			steps = append(steps, step{at, s.killLeader}, step{at + min(every/2, backAfterMost), s.revive})
		}
	}
	if f.StopNode > 0 {
		steps = append(steps, step{f.StopNodeAt, func(context.Context) (string, error) { return s.stop(f.StopNode - 1) }})
	}
	if f.LoseQuorum {
		steps = append(steps, step{f.LoseQuorumAt, s.killMajority}, step{f.LoseQuorumAt + f.LoseQuorumFor, s.revive})
	}
	slices.SortStableFunc(steps, func(a, b step) int { return int(a.at - b.at) })
	return steps
}

// run does the steps until ctx ends.
func (s *saboteur) run(ctx context.Context, steps []step, from time.Time) {
	for _, one := range steps {
		if sleep(ctx, time.Until(from.Add(one.at))) != nil {
			return
		}
		what, err := one.do(ctx)
		if ctx.Err() != nil && err != nil {
			return
		}
		if err != nil {
			s.failed = err
			return
		}
		if what != "" {
			s.done = append(s.done, report.Fault{AtMS: float64(time.Since(from).Milliseconds()), What: what})
		}
	}
}

func (s *saboteur) killLeader(ctx context.Context) (string, error) {
	if s.running() <= s.nodes.Len()/2 {
		// There is none to be had now.
		return "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, leaderWait)
	defer cancel()
	leader, err := s.nodes.Leader(ctx)
	if err != nil {
		return "", err
	}
	return "killed the leader " + s.nodes.ID(leader), s.kill(leader)
}

func (s *saboteur) kill(i int) error {
	s.killed = append(s.killed, i)
	return s.nodes.Signal(i, syscall.SIGKILL)
}

// revive starts what was killed.
func (s *saboteur) revive(context.Context) (string, error) {
	what := ""
	for _, i := range s.killed {
		if i == s.stopped || s.nodes.Pid(i) != 0 {
			continue
		}
		if err := s.nodes.Start(i); err != nil {
			return "", err
		}
		if what != "" {
			what += ", "
		}
		what += "started " + s.nodes.ID(i) + " again"
	}
	s.killed = nil
	return what, nil
}

func (s *saboteur) stop(i int) (string, error) {
	s.stopped = i
	if s.nodes.Pid(i) == 0 {
		return s.nodes.ID(i) + " stays away", nil
	}
	return "told " + s.nodes.ID(i) + " to stop", s.nodes.Stop(i, stopWait)
}

func (s *saboteur) running() (n int) {
	for i := range s.nodes.Len() {
		if s.nodes.Pid(i) != 0 {
			n++
		}
	}
	return n
}

// killMajority leaves fewer nodes than a majority.
func (s *saboteur) killMajority(context.Context) (string, error) {
	running := s.running()
	what := ""
	for i := range s.nodes.Len() {
		if running <= s.nodes.Len()/2 || s.nodes.Pid(i) == 0 {
			continue
		}
		if err := s.kill(i); err != nil {
			return "", err
		}
		running--
		if what != "" {
			what += " and "
		}
		what += s.nodes.ID(i)
	}
	return "killed a majority: " + what, nil
}
