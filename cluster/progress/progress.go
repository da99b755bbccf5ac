// Package progress waits until a node has applied an entry.
package progress

import (
	"context"
	"sync"
)

// Index is the index of the last applied entry, and who waits for it to
// reach one. The zero value is ready; safe for concurrent use.
type Index struct {
	mu      sync.Mutex
	index   uint64
	waiters map[*waiter]struct{}
}

type waiter struct {
	index uint64
	done  chan struct{}
}

// Advance moves to index, never backwards, and wakes who waited for it.
func (p *Index) Advance(index uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.index = max(p.index, index)
	for w := range p.waiters {
		if w.index <= p.index {
			close(w.done)
			delete(p.waiters, w)
		}
	}
}

// Last returns the index of the last applied entry.
func (p *Index) Last() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.index
}

// Wait returns when index has been applied, or with the error of ctx.
func (p *Index) Wait(ctx context.Context, index uint64) error {
	p.mu.Lock()
	if p.index >= index {
		p.mu.Unlock()
		return nil
	}
	w := &waiter{index: index, done: make(chan struct{})}
	if p.waiters == nil {
		p.waiters = make(map[*waiter]struct{})
	}
	p.waiters[w] = struct{}{}
	p.mu.Unlock()
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		p.mu.Lock()
		delete(p.waiters, w)
		p.mu.Unlock()
		return ctx.Err()
	}
}
