// Package out is where the answer of a request goes: to its client, or to all that share it.
package out

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/quorlease/quorlease/client/gateway/coalesce"
)

// writeMax is how long a client may take to read what is written to it. One that reads
// nothing would hold a slot for as long as it likes.
const writeMax = time.Minute

// Head is what stands before an answer.
type Head struct {
	Status int
	Header http.Header
}

// Sink is where an answer goes. One goroutine uses it.
type Sink interface {
	// Begin says what stands before it, once and first.
	Begin(h Head)
	Write(p []byte) (int, error)
	// Flush makes what was written go out.
	Flush() error
}

// Shared is a Sink that others read as well. What is written goes out at once.
type Shared struct{ *coalesce.Writer[Head] }

// Flush does nothing.
func (Shared) Flush() error { return nil }

// Direct is a Sink that is one client. Make one with New, and end it.
type Direct struct {
	w       http.ResponseWriter
	control *http.ResponseController
	// status is that of the answer, 0 before it begins.
	status int
	// lasting: a deadline acts although nothing waits to be written, as HTTP/2's do.
	lasting bool
	// hurried is when the deadline was set last, zero where none stands.
	hurried time.Time
}

// New returns a Direct that answers r.
func New(w http.ResponseWriter, r *http.Request) *Direct {
	return &Direct{w: w, control: http.NewResponseController(w), lasting: r.ProtoMajor == 2}
}

// Begin sends the head.
func (d *Direct) Begin(h Head) {
	d.status = h.Status
	header := d.w.Header()
	for name, values := range h.Header {
		if before := header[name]; len(before) > 0 {
			values = slices.Concat(before, values)
		}
		header[name] = values
	}
	d.hurry()
	d.w.WriteHeader(h.Status)
	d.relax()
}

// Write sends a part of the body.
func (d *Direct) Write(p []byte) (int, error) {
	d.hurry()
	defer d.relax()
	return d.w.Write(p)
}

// Flush sends what was written.
func (d *Direct) Flush() error {
	if d.lasting {
		d.hurry()
		defer d.relax()
	}
	if err := d.control.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// Writer is a Direct as an http.ResponseWriter, for a proxy of the library's: what stands before
// is sent with the answer, and what a provider says before its answer is not.
type Writer struct {
	*Direct
	header http.Header
}

// NewWriter returns one. End it.
func NewWriter(w http.ResponseWriter, r *http.Request) *Writer {
	return &Writer{New(w, r), http.Header{}}
}

// Header is that of the answer, beside what was there before.
func (w *Writer) Header() http.Header { return w.header }

// WriteHeader begins the answer; others than the first are left out.
func (w *Writer) WriteHeader(status int) {
	if status >= http.StatusOK && w.status == 0 {
		w.Begin(Head{Status: status, Header: w.header})
	}
}

// Write sends a part of the body.
func (w *Writer) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.Direct.Write(p)
}

// FlushError sends what was written.
func (w *Writer) FlushError() error { return w.Flush() }

// Status is that of the answer, 0 before it begins.
func (d *Direct) Status() int { return d.status }

// End takes the deadline away from what comes next on the connection.
func (d *Direct) End() {
	if !d.hurried.IsZero() {
		d.hurried = time.Time{}
		_ = d.control.SetWriteDeadline(time.Time{})
	}
}

// relax takes a deadline away that would end an answer while its provider thinks.
func (d *Direct) relax() {
	if d.lasting {
		d.End()
	}
}

// hurry sets the deadline of what is written next, where the connection has any. One that was
// set a moment ago is as good.
func (d *Direct) hurry() {
	if now := time.Now(); now.Sub(d.hurried) > time.Second {
		d.hurried = now
		_ = d.control.SetWriteDeadline(now.Add(writeMax))
	}
}
