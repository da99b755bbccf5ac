package out

import (
	"errors"
	"io"
	"sync"
	"time"
)

// silence is how long an answer may be silent. A model that thinks says nothing for minutes.
const silence = 10 * time.Minute

// Lively closes a body that says nothing for as long as silence is.
type Lively struct {
	io.ReadCloser
	timer *time.Timer
}

// NewLively returns one. Stop it.
func NewLively(body io.ReadCloser) *Lively {
	return &Lively{body, time.AfterFunc(silence, func() { _ = body.Close() })}
}

// Read reads on.
func (l *Lively) Read(p []byte) (int, error) {
	l.timer.Reset(silence)
	return l.ReadCloser.Read(p)
}

// Stop leaves the body to whoever has it.
func (l *Lively) Stop() { l.timer.Stop() }

// Watched is a body of an answer that says whether it was read to its end.
type Watched struct {
	io.ReadCloser
	Whole *bool
}

// Read reads on.
func (b Watched) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		*b.Whole = true
	}
	return n, err
}

// Spoken is a body as it is sent. What was sent is not held by it.
type Spoken struct{ Rest []byte }

// Read gives what comes next.
func (s *Spoken) Read(p []byte) (int, error) {
	n := copy(p, s.Rest)
	if s.Rest = s.Rest[n:]; len(s.Rest) == 0 {
		s.Rest = nil
		return n, io.EOF
	}
	return n, nil
}

// Close does nothing: who reads may still do so.
func (*Spoken) Close() error { return nil }

// Step is how much of an answer is read at once.
const Step = 16 << 10

// copies are buffers for Copy.
var copies = sync.Pool{New: func() any { return new([Step]byte) }}

// Copy copies what is left of an answer.
func Copy(to io.Writer, from io.Reader) error {
	room := copies.Get().(*[Step]byte)
	defer copies.Put(room)
	_, err := io.CopyBuffer(onlyWriter{to}, from, room[:])
	return err
}

// onlyWriter hides what else a writer can do, so that the buffer is used.
type onlyWriter struct{ io.Writer }

// Flushing sends what is written at once.
type Flushing struct{ Sink }

// Write writes and flushes.
func (f Flushing) Write(p []byte) (int, error) {
	n, err := f.Sink.Write(p)
	if err == nil {
		err = f.Flush()
	}
	return n, err
}
