package coalesce

import (
	"context"
	"io"
)

// Writer is where work writes its answer. It is for the goroutine of the work, and not
// to be used after the work has returned.
type Writer[M any] struct {
	call *call[M]
	ctx  context.Context //nolint:containedctx // an io.Writer has no other way to hear that nobody waits
}

var _ io.Writer = (*Writer[int])(nil)

// Begin says what stands before the answer, such as its status. Only the first call
// counts. After it nobody else leads.
func (w *Writer[M]) Begin(meta M) {
	c := w.call
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.hasMeta {
		c.meta, c.hasMeta = meta, true
		c.wakeLocked()
	}
}

// Write adds a copy of p to the answer. It waits only for the fastest reader. The error
// is the cause of the context's end: ErrNobody where nobody reads.
func (w *Writer[M]) Write(p []byte) (n int, err error) {
	for n < len(p) {
		// One piece fits into half of what is kept of an answer at least.
		piece := p[n:min(len(p), n+pieceMax)]
		if err := w.call.add(w.ctx, piece); err != nil {
			return n, err
		}
		n += len(piece)
	}
	return n, nil
}

// add keeps a piece, at most pieceMax bytes.
func (c *call[M]) add(ctx context.Context, piece []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		if c.stopped != nil {
			return c.stopped
		}
		if c.roomLocked(cost(piece)) {
			break
		}
		if err := c.waitLocked(ctx); err != nil {
			return err
		}
	}
	c.pieces = append(c.pieces, append([]byte(nil), piece...))
	c.end += cost(piece)
	c.group.bytes.Add(cost(piece))
	c.wakeLocked()
	return nil
}

// roomLocked makes room for a piece that costs n. It is false where even the fastest reader has
// to read first.
func (c *call[M]) roomLocked(n int64) bool {
	limit := c.group.config.CallBytes
	if c.group.bytes.Load()+n > c.group.config.Bytes {
		limit = callBytesMin
	}
	slowest, fastest := c.end, c.begin
	for _, r := range c.readers {
		slowest, fastest = min(slowest, r.at), max(fastest, r.at)
	}
	if c.blocked = fastest < c.end+n-limit/2; c.blocked {
		return false
	}
	// Readers that have not read up to here would need more than is kept.
	least := c.end + n - limit
	if least <= c.begin {
		return true
	}
	c.sealed = true
	if slowest < least {
		c.cutLocked(least)
	}
	c.dropLocked(max(slowest, least))
	return true
}

// cutLocked cuts off the readers that have not read up to least.
func (c *call[M]) cutLocked(least int64) {
	kept := c.readers[:0]
	for _, r := range c.readers {
		if r.at >= least {
			kept = append(kept, r)
			continue
		}
		r.failed = ErrLagged
		c.group.figures.cut.Add(1)
		c.group.figures.readers.Add(-1)
	}
	clear(c.readers[len(kept):])
	c.readers = kept
}

// Reader reads an answer. It is used by one goroutine at a time.
type Reader[M any] struct {
	call *call[M]
	work Work[M]
	ctx  context.Context //nolint:containedctx // of its work, if it leads

	// All below is guarded by the call's mutex. leads: its work is what runs, or ran.
	leads  bool
	closed bool
	// piece is the number of the next one, and at where it begins.
	piece int
	at    int64
	// failed is why it gets nothing more, although others may.
	failed error
}

// Leads says whether the work that was done is this reader's own: who leads is charged.
// It may become true while the reader waits.
func (r *Reader[M]) Leads() bool {
	r.call.mu.Lock()
	defer r.call.mu.Unlock()
	return r.leads
}

// Meta waits for what stands before the answer. An answer without anything before it has
// the zero value. The error is that of the work, of ctx, ErrLagged or ErrClosed.
func (r *Reader[M]) Meta(ctx context.Context) (M, error) {
	c := r.call
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		switch {
		case r.closed:
			return *new(M), ErrClosed
		case r.failed != nil:
			return *new(M), r.failed
		case c.hasMeta || c.end > 0:
			r.yieldLocked()
			return c.meta, nil
		case c.over:
			r.yieldLocked()
			return c.meta, c.err
		}
		if err := c.waitLocked(ctx); err != nil {
			return *new(M), err
		}
	}
}

// yieldLocked lets go of the work of one that will not lead any more, and of all that it holds.
func (r *Reader[M]) yieldLocked() {
	if !r.leads {
		r.work = nil
	}
}

// Next waits for the next piece of the answer, at most 16 KiB, which others read too and
// nobody may change. It is io.EOF after the last one. Otherwise the error is that of the
// work, of ctx, ErrLagged or ErrClosed.
func (r *Reader[M]) Next(ctx context.Context) ([]byte, error) {
	c := r.call
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		switch {
		case r.closed:
			return nil, ErrClosed
		case r.failed != nil:
			return nil, r.failed
		case r.at < c.end:
			piece := c.pieces[r.piece-c.first]
			r.piece++
			r.at += cost(piece)
			if c.blocked {
				c.wakeLocked()
			}
			return piece, nil
		case c.over && c.err == nil:
			return nil, io.EOF
		case c.over:
			return nil, c.err
		}
		if err := c.waitLocked(ctx); err != nil {
			return nil, err
		}
	}
}

// Close stops reading. The work ends with ErrNobody where nobody else reads. It may be
// called twice.
func (r *Reader[M]) Close() {
	c := r.call
	c.mu.Lock()
	r.closed = true
	forget := false
	if c.removeLocked(r) && len(c.readers) == 0 {
		if !c.over {
			c.stopLocked(ErrNobody)
		}
		forget = c.left && c.readLocked()
	} else {
		// The fastest may have been this one.
		c.wakeLocked()
	}
	c.mu.Unlock()
	if forget {
		c.group.forget(c)
	}
}
