package shadow

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
)

// errLost is the end of an answer of which too much waited to be read.
var errLost = errors.New("a part of the answer was not kept")

// tape is a copy of an answer's body, for whoever reads it later. Who writes never waits. It is
// safe for one writer and one reader.
type tape struct {
	// all is how many bytes wait on all tapes, at most max.
	all *atomic.Int64
	max int64

	mu    sync.Mutex
	bytes []byte // guarded by mu
	// end is why nothing more comes, nil as long as something may.
	end error // guarded by mu
	// idle: nobody will read.
	idle bool // guarded by mu
	more chan struct{}
}

func newTape(all *atomic.Int64, most int64) *tape {
	return &tape{all: all, max: most, more: make(chan struct{}, 1)}
}

func (t *tape) wake() {
	select {
	case t.more <- struct{}{}:
	default:
	}
}

// write keeps a copy, where there is room for it.
func (t *tape) write(p []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.idle || t.end != nil || len(p) == 0 {
		return
	}
	if t.all.Add(int64(len(p))) > t.max {
		t.all.Add(-int64(len(p)))
		t.end = errLost
	} else {
		t.bytes = append(t.bytes, p...)
	}
	t.wake()
}

// finish says that nothing more comes. Only the first call counts.
func (t *tape) finish(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.end == nil {
		t.end = err
	}
	t.wake()
}

// Read waits for what comes next.
func (t *tape) Read(p []byte) (int, error) {
	for {
		n, err := t.take(p)
		if n > 0 || err != nil || len(p) == 0 {
			return n, err
		}
		<-t.more
	}
}

func (t *tape) take(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.idle {
		return 0, io.ErrClosedPipe
	}
	n := copy(p, t.bytes)
	t.bytes = t.bytes[n:]
	t.all.Add(-int64(n))
	if n == 0 {
		return 0, t.end
	}
	return n, nil
}

// Close says that nobody reads any more.
func (t *tape) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.idle = true
	t.all.Add(-int64(len(t.bytes)))
	t.bytes = nil
	t.wake()
	return nil
}

// taping is an answer's body of which a tape gets a copy.
type taping struct {
	io.ReadCloser
	tape *tape
}

// Read reads the answer.
func (t *taping) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	t.tape.write(p[:n])
	if err != nil {
		t.tape.finish(err)
	}
	return n, err
}
