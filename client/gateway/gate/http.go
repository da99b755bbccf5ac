package gate

import (
	"bytes"
	"io"
	"net/http"

	"github.com/quorlease/quorlease/client/gateway/attempt"
	"github.com/quorlease/quorlease/client/gateway/canon"
	"github.com/quorlease/quorlease/client/gateway/refuse"
)

// warningHeader tells a client what will be refused one day.
const warningHeader = "X-Quorlease-Warning"

// HTTP returns a handler that calls next for what is let through, and refuses the rest with a
// problem of RFC 9457. next finds the call with FromContext in the request's context, and may
// read the body as it was sent.
func (g *Gate) HTTP(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, no := g.config.Who.Identify(r)
		if no != nil {
			g.refuse(w, no)
			return
		}
		for _, warning := range id.Warnings {
			w.Header().Add(warningHeader, warning)
		}
		sent, work, drop := g.hold(r)
		defer drop()
		a, no := g.admit(r.Context(), &Call{Who: id, Method: r.Method, Request: sent}, r.Header, work)
		if no != nil {
			g.refuse(w, no)
			return
		}
		answer := &watched{ResponseWriter: w, Hijacker: http.NewResponseController(w)}
		// A handler that panics has failed.
		outcome := attempt.Failed
		defer func() { a.end(outcome) }()
		next.ServeHTTP(answer, sent.WithContext(a.within(r.Context())))
		if outcome = attempt.OutcomeOf(answer.status); r.Context().Err() != nil {
			outcome = attempt.Canceled
		}
	})
}

func (g *Gate) refuse(w http.ResponseWriter, no *refuse.Refusal) {
	g.refused.Add(1)
	answer := no.HTTP(refuse.Asker{}, g.config.Draw)
	answer.Write(w)
}

// hold reads a body as far as it is held, and returns the request with the body as it was, and
// a hash of what it asks for. drop is to be called when the request is answered.
func (g *Gate) hold(r *http.Request) (sent *http.Request, work canon.Sum, drop func()) {
	size := int64(0)
	drop = func() { g.bodies.Add(-size) }
	if r.Body == nil || r.Body == http.NoBody {
		return r, g.hasher.Join(canon.Sum{}, r.Method, r.URL.RequestURI()), drop
	}
	sent = r.WithContext(r.Context())
	if r.ContentLength > g.config.BodyMax {
		return sent, g.other(), drop
	}
	room := r.ContentLength
	if room <= 0 {
		room = g.config.BodyMax
	}
	if g.bodies.Add(room) > g.config.BodiesMax {
		g.bodies.Add(-room)
		return sent, g.other(), drop
	}
	size = room
	held, err := io.ReadAll(io.LimitReader(r.Body, g.config.BodyMax+1))
	size = int64(len(held))
	g.bodies.Add(size - room)
	var rest io.Reader = r.Body
	if err != nil {
		rest = failing{err}
	}
	sent.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(held), rest), r.Body}
	if err != nil || size > g.config.BodyMax {
		return sent, g.other(), drop
	}
	return sent, g.hasher.Join(g.hasher.Body(held).Work, r.Method, r.URL.RequestURI()), drop
}

// failing is the end of a body that could not be read.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// watched knows the status of an answer. 0: the handler has said nothing, which is 200.
type watched struct {
	http.ResponseWriter
	// Hijacker is for whoever looks for one. Its error is http.ErrNotSupported where there is none
	// below.
	http.Hijacker
	status int
}

// WriteHeader passes a status on; those below 200 are not the answer's.
func (w *watched) WriteHeader(status int) {
	if w.status == 0 && status >= http.StatusOK {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Flush is for whoever looks for an http.Flusher.
func (w *watched) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// Unwrap is for http.ResponseController.
func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }
