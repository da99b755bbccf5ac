package gateway

import (
	"net/http"

	"github.com/quorlease/quorlease/client/gateway/coalesce"
)

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
	flusher *http.ResponseController
	status  int
}

// Begin sends the head.
func (d *direct) Begin(h head) {
	d.status = h.status
	header := d.w.Header()
	for name, values := range h.header {
		header[name] = append(header[name], values...)
	}
	d.w.WriteHeader(h.status)
}

// Write sends a part of the body.
func (d *direct) Write(p []byte) (int, error) { return d.w.Write(p) }

// Flush sends what was written.
func (d *direct) Flush() error { return d.flusher.Flush() }
