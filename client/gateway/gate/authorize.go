package gate

import (
	"net/http"
	"strconv"

	"github.com/quorlease/quorlease/client/gateway/attempt"
	"github.com/quorlease/quorlease/client/gateway/canon"
	"github.com/quorlease/quorlease/client/gateway/refuse"
)

const (
	// statusHeader is what a refusal's status would be, for a proxy that takes none but 403.
	statusHeader = "X-Quorlease-Status"
	// attemptHeader counts retries, 0 first: in what is asked, and in the answer.
	attemptHeader = "X-Retry-Attempt"
)

// Authorize returns a handler that answers a proxy which asks before it forwards: 200, with the
// attempt in x-retry-attempt, or a refusal as HTTP has it. The method and the URI of what it would
// forward are in X-Forwarded-Method and X-Forwarded-Uri, or else those of the question; all other
// headers are the client's. The call ends with the answer: it is charged, and holds no slot.
//
// Who may reach the handler may ask in anybody's name that its headers can prove.
func (g *Gate) Authorize() http.Handler {
	return g.asked("X-Forwarded-Method", "X-Forwarded-Uri", func(*refuse.Answer) {})
}

// AuthRequest is Authorize for nginx, whose auth_request takes 2xx, 401 and 403 and fails for all
// else: what is neither is 403, with the status in x-quorlease-status, and has the other headers of
// a refusal. The method and the URI are in X-Original-Method and X-Original-Uri.
func (g *Gate) AuthRequest() http.Handler {
	return g.asked("X-Original-Method", "X-Original-Uri", func(a *refuse.Answer) {
		a.Header.Set(statusHeader, strconv.Itoa(a.Status))
		if a.Status != http.StatusUnauthorized {
			a.Status = http.StatusForbidden
		}
	})
}

// asked decides about a request that two headers describe. fit makes a refusal one that the asker
// understands.
func (g *Gate) asked(method, uri string, fit func(*refuse.Answer)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		about, work := g.about(r, method, uri)
		id, no := g.config.Who.Identify(about)
		var a *Admitted
		if no == nil {
			a, no = g.admit(r.Context(), &Call{Who: id, Method: about.Method, Request: about}, about.Header, work)
		}
		if no != nil {
			g.refused.Add(1)
			answer := no.HTTP(refuse.Asker{}, g.config.Draw)
			fit(&answer)
			answer.Write(w)
			return
		}
		a.end(attempt.Succeeded)
		for _, warning := range id.Warnings {
			w.Header().Add(warningHeader, warning)
		}
		w.Header().Set(attemptHeader, strconv.FormatUint(uint64(a.Attempt), 10))
		// Some take nothing else for a yes.
		w.WriteHeader(http.StatusOK)
	})
}

// about is the request that is asked about, and what work it is: of what has a body, or where the
// URI is not said once, nobody knows. Its URI is not read, but hashed.
func (g *Gate) about(r *http.Request, method, uri string) (*http.Request, canon.Sum) {
	about := r.Clone(r.Context())
	about.Body = http.NoBody
	// These are about the proxy's own site, not about who reaches this handler.
	about.Header.Del("Origin")
	about.Header.Del("Sec-Fetch-Site")
	if said := r.Header[method]; len(said) == 1 {
		about.Method = said[0]
	}
	said := r.Header[http.CanonicalHeaderKey(uri)]
	if len(said) != 1 || about.Method != http.MethodGet && about.Method != http.MethodHead {
		return about, g.other()
	}
	return about, g.hasher.Join(canon.Sum{}, about.Method, r.Host, said[0])
}
