package supervise

import (
	"bytes"
	"io"
	"sync"
)

// longestLine bounds a line that is held back until it is complete, in bytes.
// A longer one is passed on in pieces.
const longestLine = 64 << 10

// lineWriter passes whole lines on, each after a prefix, so that the lines of
// several children don't run into one another. One writer at a time.
type lineWriter struct {
	prefix string
	out    io.Writer
	// mu is shared by all writers to out.
	mu *sync.Mutex

	// pending is the beginning of a line whose end is still to come.
	pending []byte
	// latest is the last complete line, guarded by mu.
	latest string
}

// Write never fails: a child must not be stopped by a terminal that has gone.
func (w *lineWriter) Write(p []byte) (int, error) {
	w.pending = append(w.pending, p...)
	for {
		end := bytes.IndexByte(w.pending, '\n')
		if end < 0 && len(w.pending) < longestLine {
			return len(p), nil
		}
		if end < 0 {
			end = len(w.pending)
		}
		w.pass(w.pending[:end])
		w.pending = append(w.pending[:0], w.pending[min(end+1, len(w.pending)):]...)
	}
}

func (w *lineWriter) pass(line []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.latest = string(line)
	out := make([]byte, 0, len(w.prefix)+len(line)+1)
	out = append(out, w.prefix...)
	out = append(out, line...)
	_, _ = w.out.Write(append(out, '\n'))
}

// last is the last line that was written, complete or not.
func (w *lineWriter) last() string {
	if len(w.pending) > 0 {
		w.pass(w.pending)
		w.pending = w.pending[:0]
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.latest
}
