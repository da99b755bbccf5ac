package server

import (
	"context"
	"errors"
	"sync"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// peeks are the items of a session that only look, and the acquires whose charges
// were made from limits that are no more. A look waits until the node has caught up;
// one wait serves all that came in before it.
type peeks struct {
	wake   chan struct{}
	joined sync.WaitGroup
	// start starts the goroutine and returns what ends it.
	start func() context.CancelFunc

	mu      sync.Mutex
	waiting []*item
	// cancel ends the goroutine; nil until the first peek.
	cancel context.CancelFunc
	over   bool
}

// look queues a peek, and starts the goroutine for the first one.
func (s *session) look(it *item) {
	if !s.peeks.add(it) {
		// The session ended before this item was one of its items.
		s.done(it, nil, context.Canceled)
	}
}

func (p *peeks) add(it *item) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return false
	}
	p.waiting = append(p.waiting, it)
	if p.cancel == nil {
		p.cancel = p.start()
	}
	signal(p.wake)
	return true
}

// startPeeks starts the goroutine, for as long as the stream is there.
func (s *session) startPeeks() context.CancelFunc {
	ctx, cancel := context.WithCancel(s.stream.Context())
	s.peeks.joined.Go(func() { s.answerPeeks(ctx) })
	return cancel
}

// stop ends the goroutine and waits for it.
func (p *peeks) stop() {
	p.mu.Lock()
	p.over = true
	if p.cancel != nil {
		p.cancel()
	}
	p.mu.Unlock()
	p.joined.Wait()
}

func (s *session) answerPeeks(ctx context.Context) {
	for {
		select {
		case <-s.peeks.wake:
		case <-ctx.Done():
			return
		}
		s.peeks.mu.Lock()
		batch := s.peeks.waiting
		s.peeks.waiting = nil
		s.peeks.mu.Unlock()
		for len(batch) > 0 && ctx.Err() == nil {
			batch = s.lookOnce(ctx, batch)
		}
	}
}

// lookOnce answers a batch with one view of the state. It waits as long as the
// least patient of them; the others are returned if that was not enough.
func (s *session) lookOnce(ctx context.Context, batch []*item) (rest []*item) {
	first := batch[0].pending.Deadline
	for _, it := range batch[1:] {
		if d := it.pending.Deadline; d.Before(first) {
			first = d
		}
	}
	ctx, cancel := context.WithDeadline(ctx, first)
	defer cancel()
	err := s.view(ctx, batch)
	if err == nil {
		return nil
	}
	late := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, cluster.ErrDeadline)
	now := time.Now()
	for _, it := range batch {
		if late && it.pending.Deadline.After(now) {
			rest = append(rest, it)
			continue
		}
		s.done(it, nil, err)
	}
	return rest
}

// view answers all of a batch, or none.
func (s *session) view(ctx context.Context, batch []*item) (err error) {
	// Nothing above this goroutine would catch it.
	defer func() { err = s.server.failure(sessionMethod, recover(), err) }()
	found := make([]*logv1.AcquireResult, len(batch))
	refused := make([]error, len(batch))
	err = s.server.node.View(ctx, false, func(m *fsm.Machine, now bucket.Instant) {
		for i, it := range batch {
			if it.peek == nil {
				continue
			}
			if refused[i] = s.server.expander.Peek(m, it.peek, it.described); refused[i] == nil {
				found[i], refused[i] = m.Peek(now, it.peek)
			}
		}
	})
	if err != nil {
		return err
	}
	for i, it := range batch {
		if it.peek == nil {
			s.repeat(ctx, it)
			continue
		}
		s.done(it, &logv1.Result{Kind: &logv1.Result_Acquire{Acquire: found[i]}}, refused[i])
	}
	return nil
}
