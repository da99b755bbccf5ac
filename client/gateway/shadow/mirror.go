package shadow

import (
	"context"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"sync/atomic"
)

// Bounds of what is looked at. Beyond them requests are forwarded without a decision.
const (
	// decidingMax is how many requests may be undecided at once.
	decidingMax = 1024
	// heldMax is how many bytes of bodies are held, and tapesMax how many bytes of answers wait for
	// those that are not decided yet.
	heldMax  = 256 << 20
	tapesMax = 64 << 20
)

// Mirror forwards requests and hears what would have become of them. It is safe for concurrent
// use. Make one with New.
type Mirror struct {
	book *book
	// deciding are requests that are not decided yet, held and taped bytes of bodies and answers.
	deciding, held, taped atomic.Int64
	config                Config
}

// Logger gets what a person has to know.
type Logger interface {
	Info(msg string, args ...any)
	Error(msg string, args ...any)
}

// Config is what a mirror needs. All of it is required.
type Config struct {
	// Next sends.
	Next   http.RoundTripper
	Logger Logger
	// Proxy has the ErrorLog of what forwards. What else it says does not count.
	Proxy httputil.ReverseProxy
}

// New returns a mirror, which writes a line a minute while there are requests.
func New(c Config) *Mirror { return &Mirror{book: newBook(), config: c} }

// Report is what it has found so far. on says whether it is used now.
func (m *Mirror) Report(on bool) Report {
	r := m.book.report()
	r.On = on
	return r
}

type callKey struct{}

// RoundTrip sends a request, unless it is the second half of one: that gets a copy of the real
// answer, and nothing is sent.
func (m *Mirror) RoundTrip(r *http.Request) (*http.Response, error) {
	c, is := r.Context().Value(callKey{}).(*Call)
	if !is {
		return m.config.Next.RoundTrip(r)
	}
	if r.Body != nil {
		_ = r.Body.Close()
	}
	c.decide(&verdict{passed: true})
	if trace := httptrace.ContextClientTrace(r.Context()); trace != nil && trace.WroteHeaders != nil {
		trace.WroteHeaders()
	}
	select {
	case <-c.head:
	case <-r.Context().Done():
		return nil, context.Cause(r.Context())
	}
	if c.failed != nil {
		return nil, c.failed
	}
	answer := *c.answer
	answer.Header, answer.Body, answer.Request = c.answer.Header.Clone(), c.tape, r
	return &answer, nil
}

// Nowhere is where the second half of a request writes to. It is used by one goroutine.
type Nowhere struct{ header http.Header }

// Header is one that nobody reads.
func (n *Nowhere) Header() http.Header {
	if n.header == nil {
		n.header = http.Header{}
	}
	return n.header
}

// WriteHeader does nothing.
func (*Nowhere) WriteHeader(int) {}

// Write takes everything.
func (*Nowhere) Write(p []byte) (int, error) { return len(p), nil }

// Flush does nothing.
func (*Nowhere) Flush() {}
