package supervise

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"time"
	"unicode"
)

const (
	// longestLine bounds a line that is held back until it is complete, in bytes.
	// A longer one is passed on in pieces.
	longestLine = 64 << 10
	// mostKinds bounds how many kinds of lines are remembered at once.
	mostKinds = 1000
)

// sink is where the lines of all children go, one at a time.
type sink struct {
	// similar is how long a line that differs from an earlier one in numbers
	// only is held back. Zero: not at all.
	similar time.Duration

	mu    sync.Mutex
	out   io.Writer
	muted bool
	kinds map[string]*kind
}

// kind is what is remembered of lines that differ in numbers only.
type kind struct {
	passed time.Time
	held   int
}

func (s *sink) mute() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.muted = true
}

// pass writes one line, unless there was one like it a moment ago. A terminal
// that has gone is no reason to stop a child.
func (s *sink) pass(prefix, line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.muted {
		return
	}
	if s.similar > 0 {
		held, now := s.held(prefix+withoutNumbers(line), time.Now())
		if !now {
			return
		}
		if held > 0 {
			line += fmt.Sprintf(" (and %d like it)", held)
		}
	}
	_, _ = io.WriteString(s.out, prefix+line+"\n")
}

// held says whether a line of this kind is passed on at this moment, and how
// many like it were not since the last one.
func (s *sink) held(name string, at time.Time) (held int, now bool) {
	known := s.kinds[name]
	if known == nil {
		if len(s.kinds) >= mostKinds {
			clear(s.kinds)
		}
		s.kinds[name] = &kind{passed: at}
		return 0, true
	}
	if at.Sub(known.passed) < s.similar {
		known.held++
		return 0, false
	}
	held, known.held, known.passed = known.held, 0, at
	return held, true
}

// withoutNumbers is what two lines share that say the same of other numbers.
func withoutNumbers(line string) string {
	out := make([]rune, 0, len(line))
	for _, r := range line {
		if !unicode.IsDigit(r) {
			out = append(out, r)
		}
	}
	return string(out)
}

// lineWriter passes the whole lines of one child on, each after a prefix, so
// that the lines of several children don't run into one another. One writer at
// a time; last may be called at any time after the child has ended.
type lineWriter struct {
	prefix string
	sink   *sink

	// pending is the beginning of a line whose end is still to come, latest the
	// last line before it.
	pending []byte
	latest  string
}

// Write never fails.
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
	w.latest = string(line)
	w.sink.pass(w.prefix, w.latest)
}

// last is the last line that was written, complete or not.
func (w *lineWriter) last() string {
	if len(w.pending) > 0 {
		w.pass(w.pending)
		w.pending = w.pending[:0]
	}
	return w.latest
}
