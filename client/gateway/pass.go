package gateway

import (
	"net/http"
	"net/http/httputil"
	"time"

	"github.com/quorlease/quorlease/client/gateway/charge"
	"github.com/quorlease/quorlease/client/gateway/provider"
	"github.com/quorlease/quorlease/client/gateway/refuse"
)

// pass forwards what is no work for a model, such as a list of models or an upload, to the
// first deployment: as one request, without a look at what it says, and once.
func (c *call) pass(w http.ResponseWriter) {
	g := c.gateway
	c.deployment = &g.config.Deployments[0]
	held, decision, err := g.desk.Take(c.request.Context(), charge.Work{
		Client: c.who.Client, Class: c.who.Class, Attributes: c.attributes(),
		MaxWait: max(0, time.Until(c.until)), Amounts: map[string]int64{provider.Requests: 1},
	})
	if err != nil {
		c.ended(w, err, 0)
		return
	}
	if held == nil {
		refusal := refuse.Denied(decision)
		c.refuse(w, &refusal)
		return
	}
	sent := false
	defer func() {
		if sent {
			held.Settle(nil)
		} else {
			held.Release()
		}
	}()
	g.counts.forwarded.Add(1)
	proxy := httputil.ReverseProxy{
		Transport: g.upstream, FlushInterval: -1,
		Rewrite: func(p *httputil.ProxyRequest) {
			to, err := http.NewRequestWithContext(p.Out.Context(), p.Out.Method, c.target(), p.Out.Body)
			if err != nil {
				return
			}
			p.Out.URL, p.Out.Host = to.URL, ""
			c.headers(p.Out)
			sent = true
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			sent = sent && !isUnsent(err)
			if r.Context().Err() != nil {
				g.counts.gone.Add(1)
				return
			}
			c.refuse(w, &refuse.Refusal{
				Reason: refuse.Capacity, Scope: "deployment", Detail: "the provider can't be reached",
			})
		},
	}
	proxy.ServeHTTP(w, c.request)
}
