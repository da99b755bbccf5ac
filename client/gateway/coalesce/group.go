// Package coalesce gives requests that ask the same at the same time one answer.
//
// The first of them leads: its work runs, and is charged, and what it writes goes to
// all. One that comes while the answer is being written gets what was written so far
// and then the rest. The work goes on as long as anybody waits for it, whoever asked
// first. Where it fails in a way that passes before anything was written, another of
// those that wait leads with work of its own.
//
// Whatever does not fit the bounds is not coalesced: its caller does it alone.
package coalesce

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/quorlease/quorlease/client/gateway/canon"
	"github.com/quorlease/quorlease/client/gateway/internal/bound"
)

// Key is what makes requests equal. Those of two tenants never are.
type Key struct {
	// Tenant is whose the request is, by its credential. Empty: it is not coalesced.
	Tenant string
	// Route is the method and path, and Model what is asked.
	Route, Model string
	// Body is the hash of what answers have in common: canon.Sums.Exact.
	Body canon.Sum
	// Stream: the answer is to come in pieces.
	Stream bool
}

// Work does what is asked, and writes the answer to w before it returns. Its context
// has the values of the request whose work it is, and not its end: it ends when nobody
// waits any more, and with the group. A deadline is for the work to set.
type Work[M any] func(ctx context.Context, w *Writer[M]) error

// Config bounds a group. The zero value is ready.
type Config struct {
	// Calls is how many pieces of work, and answers that are still being read, there are
	// at once, 1 to 2^20. Default 4,096.
	Calls int
	// Followers is how many requests share one answer besides the first, 1 to 2^20.
	// Default 1,024.
	Followers int
	// CallBytes is how much of one answer is kept, 64 KiB to 1 GiB, where each piece
	// counts 48 bytes beside its own. Default 1 MiB. Once
	// an answer is longer nobody can join any more, and who is this far behind its end is
	// cut off. The work waits where the fastest reader is half as far behind: between the
	// two there is room for those that are a little slower.
	CallBytes int64
	// Bytes is how much of all answers is kept, at least CallBytes. Default 64 MiB. While
	// there is more, no work begins here, and those that go on keep only the last 64 KiB
	// each, as if CallBytes were that.
	Bytes int64
	// Promotions is how many of those that wait may lead after a failure, 1 to 100.
	// Default 1; -1 is for none.
	Promotions int
	// Transient says whether a failure passes, so that somebody else's attempt may fare
	// better. Nil: none does.
	Transient func(error) bool
}

const (
	// pieceMax is the largest piece of an answer that is kept as one, and pieceCost what
	// each one counts beside its bytes: an answer may come in very small ones.
	pieceMax  = 16 << 10
	pieceCost = 48

	callBytesMin, callBytesMax = 64 << 10, 1 << 30
)

// The errors of readers.
var (
	// ErrLagged: the reader was too far behind the others.
	ErrLagged = errors.New("coalesced answer: read too slowly")
	// ErrNobody is the cause of a context that ended because nobody waits.
	ErrNobody = errors.New("coalesced work: nobody waits for it")
	// ErrClosed: the group or the reader is closed.
	ErrClosed = errors.New("coalesced answer: closed")
	// ErrExited: the work ended its goroutine instead of returning.
	ErrExited = errors.New("coalesced work: ended its goroutine")
)

// Group is the work in flight. M is what stands before an answer, such as its status
// and headers. It is safe for concurrent use.
type Group[M any] struct {
	config  Config
	running sync.WaitGroup
	bytes   atomic.Int64
	figures figures

	mu struct {
		sync.Mutex
		closed bool
		// byKey are those that can be joined, and live all that take up room.
		byKey map[Key]*call[M]
		live  map[*call[M]]struct{}
	}
}

// New returns a Group. The error names every field that is out of range.
func New[M any](c Config) (*Group[M], error) {
	c.defaults()
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("coalescing configuration: %w", err)
	}
	g := &Group[M]{config: c}
	g.mu.byKey, g.mu.live = make(map[Key]*call[M]), make(map[*call[M]]struct{})
	return g, nil
}

func (c *Config) defaults() {
	bound.Default(&c.Calls, 4096)
	bound.Default(&c.Followers, 1024)
	bound.Default(&c.CallBytes, 1<<20)
	bound.Default(&c.Bytes, max(64<<20, c.CallBytes))
	bound.Default(&c.Promotions, 1)
	if c.Transient == nil {
		c.Transient = func(error) bool { return false }
	}
}

func (c *Config) validate() error {
	return errors.Join(
		bound.Within("calls", int64(c.Calls), 1, 1<<20),
		bound.Within("followers", int64(c.Followers), 1, 1<<20),
		bound.Within("call bytes", c.CallBytes, callBytesMin, callBytesMax),
		bound.Within("bytes", c.Bytes, c.CallBytes, 1<<40),
		bound.Within("promotions", int64(c.Promotions), -1, 100),
	)
}

// Join takes part in the work for key: what is in flight, or else work, which begins. It
// never waits. False: it does not fit, and the caller does the work without the group.
// The reader has to be closed when its client has gone, and when it has read enough.
func (g *Group[M]) Join(ctx context.Context, key Key, work Work[M]) (*Reader[M], bool) {
	r := &Reader[M]{work: work, ctx: context.WithoutCancel(ctx)}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.closed || key.Tenant == "" {
		return nil, false
	}
	if c := g.mu.byKey[key]; c != nil {
		switch c.admit(r) {
		case joined:
			g.figures.coalesced.Add(1)
			return r, true
		case full:
			g.figures.duplicates.Add(1)
			return nil, false
		case sealed:
			g.figures.duplicates.Add(1)
		case over:
		}
	}
	if len(g.mu.live) >= g.config.Calls || g.bytes.Load() >= g.config.Bytes {
		g.figures.alone.Add(1)
		return nil, false
	}
	c := newCall(g, key)
	c.lead(r)
	g.mu.byKey[key] = c
	g.mu.live[c] = struct{}{}
	g.running.Add(1)
	go c.run(r)
	return r, true
}

// unlist makes the next request for the call's key begin anew.
func (g *Group[M]) unlist(c *call[M]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.byKey[c.key] == c {
		delete(g.mu.byKey, c.key)
	}
}

// forget gives back the room of a call that is over and read.
func (g *Group[M]) forget(c *call[M]) {
	g.unlist(c)
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.mu.live, c)
}

// Close ends all work and waits until it has returned. Nothing is coalesced any more. It
// may be called twice.
func (g *Group[M]) Close() {
	g.mu.Lock()
	g.mu.closed = true
	live := make([]*call[M], 0, len(g.mu.live))
	for c := range g.mu.live {
		live = append(live, c)
	}
	g.mu.Unlock()
	for _, c := range live {
		c.stop(ErrClosed)
	}
	g.running.Wait()
}

// figures are the counters of Stats.
type figures struct {
	readers                                               atomic.Int64
	executed, coalesced, duplicates, alone, promoted, cut atomic.Uint64
}

// Stats are what a group has done since it was made, and what it holds.
type Stats struct {
	// Executed counts work that was begun, and Coalesced requests that needed none.
	Executed, Coalesced uint64
	// Duplicates counts requests whose work was in flight and could not be shared any
	// more: they do it a second time.
	Duplicates uint64
	// Alone counts other requests that found no room.
	Alone uint64
	// Promoted counts those that led after a failure, and Cut those that were cut off.
	Promoted, Cut uint64
	// Calls is how many answers there are, Readers how many requests share them, and
	// Bytes how much of them is kept.
	Calls, Readers int
	Bytes          int64
}

// Stats are the figures now.
func (g *Group[M]) Stats() Stats {
	g.mu.Lock()
	calls := len(g.mu.live)
	g.mu.Unlock()
	f := &g.figures
	return Stats{
		Executed: f.executed.Load(), Coalesced: f.coalesced.Load(), Duplicates: f.duplicates.Load(), Alone: f.alone.Load(),
		Promoted: f.promoted.Load(), Cut: f.cut.Load(),
		Calls: calls, Readers: int(f.readers.Load()), Bytes: g.bytes.Load(),
	}
}
