package gateway

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"strings"
	"sync/atomic"

	"github.com/quorlease/quorlease/client/gateway/charge"
	"github.com/quorlease/quorlease/client/gateway/internal/header"
	"github.com/quorlease/quorlease/client/gateway/internal/out"
	"github.com/quorlease/quorlease/client/gateway/provider"
	"github.com/quorlease/quorlease/client/gateway/refuse"
)

// pass forwards what is no work for a model, such as a list of models or an upload: as one
// request, without a look at what it says, and once.
func (c *call) pass(ctx context.Context, w http.ResponseWriter) {
	g := c.gateway
	c.deployment = c.set.home(c.request)
	c.describe()
	defer c.body.leave()
	key, ok := c.readKey(w)
	if !ok || c.keeps(key) && !c.hold(w, key) {
		return
	}
	var p passage
	defer func() { c.turn.End(p.whole) }()
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
	defer func() {
		if p.sent.Load() {
			held.Settle(nil)
		} else {
			held.Release()
		}
	}()
	trace := &httptrace.ClientTrace{WroteHeaders: func() { p.sent.Store(true) }}
	sending, done := c.lasting(httptrace.WithClientTrace(ctx, trace))
	defer done()
	to := out.NewWriter(w, c.request)
	defer to.End()
	w = to
	if c.turn != nil {
		kept := out.Record(ctx, to.Direct, c.turn)
		defer func() {
			if kept.Lost() != nil {
				g.counts.gone.Add(1)
				c.aborted = true
			}
		}()
		w = kept
	}
	defer p.stop()
	g.counts.forwarded.Add(1)
	c.proxy(&p).ServeHTTP(w, c.request.WithContext(sending))
}

// passage is how far a request has come that is passed on without a look at it.
type passage struct {
	// sent: the provider may have read something of it. whole: its answer was read to its end.
	sent  atomic.Bool
	whole bool
	// body is the answer's, nil before there is one.
	body *out.Lively
}

// stop leaves the answer's body to whoever has it.
func (p *passage) stop() {
	if p.body != nil {
		p.body.Stop()
	}
}

// proxy passes a request on, and its answer.
func (c *call) proxy(p *passage) *httputil.ReverseProxy {
	g := c.gateway
	return &httputil.ReverseProxy{
		Transport: g.upstream, FlushInterval: -1, ErrorLog: slog.NewLogLogger(g.config.Logger.Handler(), slog.LevelDebug),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL, r.Out.Host = c.target(), ""
			r.Out.Header = c.headers()
		},
		ModifyResponse: func(answer *http.Response) error {
			if no := c.unpassable(answer); no != nil {
				return no
			}
			c.unbounded(answer)
			answer.Header = header.Passable(answer)
			p.body = out.NewLively(answer.Body)
			answer.Body = out.Watched{ReadCloser: p.body, Whole: &p.whole}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			var no *refusedError
			switch {
			case r.Context().Err() != nil:
				g.counts.gone.Add(1)
				c.aborted = true
			case errors.As(err, &no):
				c.refuse(w, &no.refusal)
			default:
				refusal := c.unusable("the provider can't be reached")
				c.refuse(w, &refusal)
			}
		},
	}
}

// unpassable is the refusal in the place of an answer that is passed on to nobody, or nil.
func (c *call) unpassable(answer *http.Response) error {
	switch code := answer.StatusCode; {
	case c.home != nil && code/100 != 2:
		// Who asked for another model is told of that one's trouble.
		return errFallback(c)
	case code < 200 || code/100 == 3 && code != http.StatusNotModified || code > 599:
		// A client that followed it would leave the gateway, with its key.
		return &refusedError{refusal: c.unusable("the provider has answered what is passed on to nobody")}
	case code == http.StatusUnauthorized && c.deployment.Key != "":
		// It is the gateway's key that is wrong, and part of it may stand in the answer.
		c.gateway.config.Logger.Error("the provider does not take the key of a deployment", "deployment", c.deployment.Name)
		return &refusedError{refusal: c.unusable("the gateway's access to the provider is not in order")}
	}
	return nil
}

// home is the deployment that gets what is no work for a model: the first one of the
// provider whose clients ask like this, or the first of all.
func (s *settings) home(r *http.Request) *Deployment {
	name := ""
	path := r.URL.Path
	switch {
	case strings.HasPrefix(path, "/v1beta/"):
		name = provider.NameGemini
	case strings.HasPrefix(path, "/v1/projects/") || strings.HasPrefix(path, "/v1beta1/"):
		name = provider.NameVertex
	case strings.HasPrefix(path, "/model/"):
		name = provider.NameBedrock
	case r.Header.Get("Anthropic-Version") != "":
		name = provider.NameAnthropic
	case strings.HasPrefix(path, "/openai/"):
		name = provider.NameAzure
	}
	for i := range s.Deployments {
		if d := &s.Deployments[i]; d.Provider.Name == name {
			return d
		}
	}
	return &s.Deployments[0]
}
