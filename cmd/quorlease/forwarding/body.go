package forwarding

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// Whoever sends a body slowly holds the room that it takes. It may pause for so long, and
// take so long in all.
const (
	pauseMax   = 30 * time.Second
	bodyWithin = 10 * time.Minute
)

// hurried is a body that has to come in time. The time of the answer is not bounded.
type hurried struct {
	io.ReadCloser
	connection *http.ResponseController
	pause      time.Duration
	until      time.Time
	// over: it has come to its end, or failed.
	over bool
}

// hurry makes the body of a request one that has to come in time. What it returns is to be called
// when the request was answered: the server reads what nobody has read before it sends an answer.
func hurry(w http.ResponseWriter, r *http.Request, pause, within time.Duration) (answered func()) {
	if r.Body == nil || r.Body == http.NoBody {
		return func() {}
	}
	body := &hurried{
		ReadCloser: r.Body, connection: http.NewResponseController(w), pause: pause, until: time.Now().Add(within),
	}
	r.Body = body
	return body.answered
}

// answered gives what was not read one more pause to come. The server takes the deadline away
// before the next request.
func (b *hurried) answered() {
	if !b.over {
		_ = b.connection.SetReadDeadline(time.Now().Add(b.pause))
	}
}

// Read waits for a part at a time. Between two of them time does not count: whoever reads may
// have to wait itself, and after the last one the server reads to notice that nobody waits for
// the answer any more.
func (b *hurried) Read(p []byte) (int, error) {
	next := time.Now().Add(b.pause)
	if next.After(b.until) {
		next = b.until
	}
	if err := b.connection.SetReadDeadline(next); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	n, err := b.ReadCloser.Read(p)
	b.over = err != nil
	if err == nil || errors.Is(err, io.EOF) {
		_ = b.connection.SetReadDeadline(time.Time{})
	}
	return n, err
}
