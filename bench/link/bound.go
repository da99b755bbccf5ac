package link

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// grain is for how long calls that begin share their end, as a part of the longest
// that a call may take, and at most.
const (
	grainPart = 64
	grainMost = 10 * time.Millisecond
)

// bounds are the ends of calls. A context with a timer for each call would cost a
// caller more than all else that it does.
type bounds struct {
	current atomic.Pointer[bound]
	mu      sync.Mutex
}

// bound is when those calls have to be over that begin in one moment.
type bound struct {
	// parent is whose calls they are.
	parent, ctx context.Context //nolint:containedctx // the contexts of many calls
	cancel      context.CancelFunc
}

// bounded is ctx with an end no later than the link's timeout from now, and at most a
// grain sooner. The error is that of ctx.
func (l *Link) bounded(ctx context.Context) (context.Context, error) {
	if b := l.bounds.current.Load(); b != nil && b.parent == ctx {
		return b.ctx, nil
	}
	l.bounds.mu.Lock()
	defer l.bounds.mu.Unlock()
	if b := l.bounds.current.Load(); b != nil && b.parent == ctx {
		return b.ctx, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b := &bound{parent: ctx}
	b.ctx, b.cancel = context.WithTimeout(ctx, l.config.Timeout)
	l.bounds.current.Store(b)
	time.AfterFunc(min(grainMost, l.config.Timeout/grainPart), func() { l.bounds.current.CompareAndSwap(b, nil) })
	// It ends by itself; this lets go of the parent then.
	context.AfterFunc(b.ctx, b.cancel)
	return b.ctx, nil
}
