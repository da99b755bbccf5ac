package coalesce

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
)

// call is one piece of work and its answer. Its mutex is taken after that of the group.
type call[M any] struct {
	group *Group[M]
	key   Key

	mu sync.Mutex
	// changed is closed when something has changed for those that wait, nil if nobody does.
	changed chan struct{}
	meta    M
	hasMeta bool
	// pieces are what is kept of the answer: from begin to end, in what it has cost since
	// its beginning. first is the number of the first of them.
	pieces     [][]byte
	first      int
	begin, end int64
	// readers are those that still read, in the order in which they came.
	readers []*Reader[M]
	// sealed: the beginning is not kept any more. blocked: the work waits for a reader.
	sealed   bool
	blocked  bool
	promoted int
	cancel   context.CancelCauseFunc
	// stopped is why there is no more work, nil where there may be.
	stopped error
	// over: the work has ended, with err. left: the goroutine has, too.
	over, left bool
	err        error
}

// entry is what became of one that wants to join.
type entry int

const (
	joined entry = iota
	// full: as many share it as may.
	full
	// sealed: its beginning is gone.
	sealed
	// over: nothing is in flight.
	over
)

func newCall[M any](g *Group[M], key Key) *call[M] { return &call[M]{group: g, key: key} }

// admit adds a reader to what is in flight.
func (c *call[M]) admit(r *Reader[M]) entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.over || c.stopped != nil:
		return over
	case c.sealed:
		return sealed
	case len(c.readers) > c.group.config.Followers:
		return full
	}
	c.addLocked(r)
	return joined
}

func (c *call[M]) addLocked(r *Reader[M]) {
	r.call = c
	c.readers = append(c.readers, r)
	c.group.figures.readers.Add(1)
}

// lead makes r the first reader.
func (c *call[M]) lead(r *Reader[M]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.addLocked(r)
	c.leadLocked(r)
}

func (c *call[M]) leadLocked(r *Reader[M]) {
	r.ctx, c.cancel = context.WithCancelCause(r.ctx)
	r.leads = true
	c.group.figures.executed.Add(1)
}

// run does the work of r, and of those who lead after it.
func (c *call[M]) run(r *Reader[M]) {
	defer c.group.running.Done()
	defer c.leave()
	for r != nil {
		passes, err := c.perform(r)
		r = c.next(r, passes, err)
	}
}

// perform does the work of r. passes: somebody else may fare better.
func (c *call[M]) perform(r *Reader[M]) (passes bool, err error) {
	defer func() {
		if value := recover(); value != nil {
			passes, err = false, &PanicError{Value: value, Stack: debug.Stack()}
		}
	}()
	err = r.work(r.ctx, &Writer[M]{call: c, ctx: r.ctx})
	return err != nil && c.group.config.Transient(err), err
}

// PanicError is what readers are told when the work panicked.
type PanicError struct {
	// Value is what it panicked with.
	Value any
	// Stack is where.
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("coalesced work: panic: %.200v", e.Value) }

// Unwrap is the value, where that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// next ends the work of r, or finds who leads instead.
func (c *call[M]) next(r *Reader[M], passes bool, err error) *Reader[M] {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancel(nil)
	if passes && c.stopped == nil && !c.hasMeta && c.end == 0 && c.promoted < c.group.config.Promotions {
		r.failed = err
		c.removeLocked(r)
		if len(c.readers) > 0 {
			c.promoted++
			c.group.figures.promoted.Add(1)
			leader := c.readers[0]
			c.leadLocked(leader)
			c.wakeLocked()
			return leader
		}
	}
	c.overLocked(err)
	return nil
}

func (c *call[M]) overLocked(err error) {
	if !c.over {
		c.over, c.err = true, err
		c.wakeLocked()
	}
}

// leave is the end of the goroutine, however it comes.
func (c *call[M]) leave() {
	c.mu.Lock()
	c.cancel(nil)
	c.overLocked(ErrExited)
	c.left = true
	read := c.readLocked()
	c.mu.Unlock()
	c.group.unlist(c)
	if read {
		c.group.forget(c)
	}
}

// stop ends the work because of cause.
func (c *call[M]) stop(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopLocked(cause)
}

func (c *call[M]) stopLocked(cause error) {
	if c.stopped == nil {
		c.stopped = cause
		c.cancel(cause)
		c.wakeLocked()
	}
}

// removeLocked takes a reader out, and says whether it was there.
func (c *call[M]) removeLocked(r *Reader[M]) bool {
	i := slices.Index(c.readers, r)
	if i < 0 {
		return false
	}
	c.readers = slices.Delete(c.readers, i, i+1)
	c.group.figures.readers.Add(-1)
	return true
}

// readLocked says whether nobody will read on, and gives back the bytes then.
func (c *call[M]) readLocked() bool {
	if len(c.readers) > 0 {
		return false
	}
	c.dropLocked(c.end)
	return true
}

// cost is what a piece counts.
func cost(piece []byte) int64 { return int64(len(piece)) + pieceCost }

// dropLocked forgets whole pieces before offset.
func (c *call[M]) dropLocked(offset int64) {
	n := 0
	for n < len(c.pieces) && c.begin+cost(c.pieces[n]) <= offset {
		c.begin += cost(c.pieces[n])
		c.group.bytes.Add(-cost(c.pieces[n]))
		c.pieces[n] = nil
		n++
	}
	c.pieces = c.pieces[n:]
	c.first += n
}

func (c *call[M]) wakeLocked() {
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}

// waitLocked waits for a change or for ctx to end. The mutex is not held meanwhile.
func (c *call[M]) waitLocked(ctx context.Context) error {
	if c.changed == nil {
		c.changed = make(chan struct{})
	}
	changed := c.changed
	c.mu.Unlock()
	defer c.mu.Lock()
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
