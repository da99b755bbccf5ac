package gateway

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

// head is what stands before an answer.
type head struct {
	status int
	header http.Header
}

// sink is where an answer goes.
type sink interface {
	// Begin says what stands before it, once and first.
	Begin(h head)
	Write(p []byte) (int, error)
	// Flush makes what was written go out.
	Flush() error
}

// writer is a sink that others read as well. What is written goes out at once.
type writer struct{ *coalesce.Writer[head] }

// Flush does nothing.
func (writer) Flush() error { return nil }

// direct is a sink that is one client.
type direct struct {
	w       http.ResponseWriter
	control *http.ResponseController
	status  int
	// lasting: a deadline acts although nothing waits to be written, as HTTP/2's do.
	lasting bool
	// hurried is when the deadline was set last, zero where none stands.
	hurried time.Time
}

func newDirect(w http.ResponseWriter, r *http.Request) *direct {
	return &direct{w: w, control: http.NewResponseController(w), lasting: r.ProtoMajor == 2}
}

// Begin sends the head.
func (d *direct) Begin(h head) {
	d.status = h.status
	header := d.w.Header()
	for name, values := range h.header {
		if before := header[name]; len(before) > 0 {
			values = slices.Concat(before, values)
		}
		header[name] = values
	}
	d.hurry()
	d.w.WriteHeader(h.status)
	d.relax()
}

// Write sends a part of the body.
func (d *direct) Write(p []byte) (int, error) {
	d.hurry()
	defer d.relax()
	return d.w.Write(p)
}

// Flush sends what was written.
func (d *direct) Flush() error {
	if d.lasting {
		d.hurry()
		defer d.relax()
	}
	if err := d.control.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// end takes the deadline away from what comes next on the connection.
func (d *direct) end() {
	if !d.hurried.IsZero() {
		d.hurried = time.Time{}
		_ = d.control.SetWriteDeadline(time.Time{})
	}
}

// relax takes a deadline away that would end an answer while its provider thinks.
func (d *direct) relax() {
	if d.lasting {
		d.end()
	}
}

// hurry sets the deadline of what is written next, where the connection has any. One that was
// set a moment ago is as good.
func (d *direct) hurry() {
	if now := time.Now(); now.Sub(d.hurried) > time.Second {
		d.hurried = now
		_ = d.control.SetWriteDeadline(now.Add(writeMax))
	}
}
