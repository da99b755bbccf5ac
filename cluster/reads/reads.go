// Package reads makes a read as fresh as the moment it came in, without a log
// entry.
package reads

import (
	"context"
	"fmt"
	"sync"

	"github.com/quorlease/quorlease/cluster/outcome"
)

// Reads confirms leadership for many reads at once. One goroutine asks Raft, so
// a hanging answer holds up no more than that (R1). Safe for concurrent use.
type Reads struct {
	// applied is the index of the last entry applied here, and the term in which this
	// node serves as the leader, 0 where it doesn't.
	applied func() (index, term uint64)
	// verify asks a majority whether this node leads in a term.
	verify func(term uint64) error
	wake   chan struct{}
	done   chan struct{}

	mu      sync.Mutex
	waiting []chan<- confirmed
}

type confirmed struct {
	index uint64
	err   error
}

// New returns a Reads. applied is the index of the last entry applied here, and the
// term in which this node serves as the leader, 0 where it doesn't; verify asks a
// majority whether it leads in that term, and may block.
func New(applied func() (index, term uint64), verify func(term uint64) error) *Reads {
	return &Reads{applied: applied, verify: verify, wake: make(chan struct{}, 1), done: make(chan struct{})}
}

// Confirm returns the index of the last entry applied here, after this node has
// heard from a majority that it leads. State() alone proves nothing (R6).
func (r *Reads) Confirm(ctx context.Context) (uint64, error) {
	done := make(chan confirmed, 1)
	r.mu.Lock()
	r.waiting = append(r.waiting, done)
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
	select {
	case c := <-done:
		return c.index, c.err
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-r.done:
		return 0, outcome.ErrClosed
	}
}

// Run serves Confirm until stop is closed.
func (r *Reads) Run(stop <-chan struct{}) {
	defer close(r.done)
	for {
		select {
		case <-stop:
			return
		case <-r.wake:
		}
		r.mu.Lock()
		waiting := r.waiting
		r.waiting = nil
		r.mu.Unlock()
		if len(waiting) == 0 {
			continue
		}
		c := r.ask()
		for _, done := range waiting {
			done <- c
		}
	}
}

// ask takes the index first and verifies then: every answer that was given
// before the read came in is at or below an index that this node has applied,
// and nobody else can have given one if it still leads afterwards, in the same
// term. One who led in between may have answered what was not applied here.
func (r *Reads) ask() confirmed {
	index, term := r.applied()
	if term == 0 {
		return confirmed{err: outcome.ErrNotLeader}
	}
	if err := r.verify(term); err != nil {
		return confirmed{err: fmt.Errorf("%w: %w", outcome.ErrNotLeader, err)}
	}
	return confirmed{index: index}
}
