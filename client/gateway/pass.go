package gateway

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"strings"
	"sync/atomic"

	"github.com/quorlease/quorlease/client/gateway/charge"
	"github.com/quorlease/quorlease/client/gateway/provider"
	"github.com/quorlease/quorlease/client/gateway/refuse"
)

// pass forwards what is no work for a model, such as a list of models or an upload: as one
// request, without a look at what it says, and once.
func (c *call) pass(ctx context.Context, w http.ResponseWriter) {
	g := c.gateway
	c.deployment = c.set.home(c.request)
	c.describe()
	if g.teller.Capped(c.about) {
		c.refuse(w, &refuse.Refusal{Reason: refuse.SpendCap, Scope: "deployment"})
		return
	}
	held, err := c.take(ctx, &charge.Work{
		Client: c.who.Client, Class: c.who.Class, Attributes: c.about.Attributes,
		MaxWait: c.patience, Amounts: map[string]int64{provider.Requests: 1},
	})
	if err != nil {
		c.ended(w, err, 0)
		return
	}
	var sent atomic.Bool
	defer func() {
		if sent.Load() {
			held.Settle(nil)
		} else {
			held.Release()
		}
	}()
	g.counts.forwarded.Add(1)
	proxy := httputil.ReverseProxy{
		Transport: g.upstream, FlushInterval: -1, ErrorLog: slog.NewLogLogger(g.config.Logger.Handler(), slog.LevelDebug),
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL, p.Out.Host = c.target(), ""
			p.Out.Header = c.headers()
		},
		ModifyResponse: func(answer *http.Response) error {
			answer.Header = passable(answer)
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, _ error) {
			if r.Context().Err() != nil {
				g.counts.gone.Add(1)
				c.aborted = true
				return
			}
			refusal := c.unusable("the provider can't be reached")
			c.refuse(w, &refusal)
		},
	}
	trace := &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }}
	proxy.ServeHTTP(w, c.request.WithContext(httptrace.WithClientTrace(ctx, trace)))
}

// home is the deployment that gets what is no work for a model: the first one of the
// provider whose clients ask like this, or the first of all.
func (s *settings) home(r *http.Request) *Deployment {
	name := ""
	switch {
	case r.Header.Get("Anthropic-Version") != "":
		name = provider.NameAnthropic
	case strings.HasPrefix(r.URL.Path, "/openai/"):
		name = provider.NameAzure
	}
	for i := range s.Deployments {
		if d := &s.Deployments[i]; d.Provider.Name == name {
			return d
		}
	}
	return &s.Deployments[0]
}
