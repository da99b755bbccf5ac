package gateway

import (
	"bytes"
	"net/http"

	"github.com/quorlease/quorlease/client/gateway/attempt"
	"github.com/quorlease/quorlease/client/gateway/circuit"
	"github.com/quorlease/quorlease/client/gateway/estimate"
	"github.com/quorlease/quorlease/client/gateway/provider"
	"github.com/quorlease/quorlease/client/gateway/refuse"
	"github.com/quorlease/quorlease/client/gateway/shadow"
)

// Shadow is what would have become of the requests that were only forwarded.
func (g *Gateway) Shadow() shadow.Report { return g.mirror.Report(g.live.Load().Shadow) }

// mirror forwards a request as it came, and finds out beside that what would have become of it.
func (c *call) mirror(w http.ResponseWriter) {
	g, r := c.gateway, c.request
	most := int64(0)
	if r.Method == http.MethodPost && c.set.form(r.URL.Path) != provider.ProblemBody {
		most = c.set.BodyMax
	}
	one := g.mirror.Begin(r, most)
	defer one.End()
	if question, ok := one.Question(); ok {
		c.beside(one, question)
	}
	c.deployment = c.set.towards(r, one.Text())
	one.Forward(w, c.target(), c.deployment.sign)
}

// beside begins the second half of a request that is forwarded: it goes nowhere, and ends with
// the gateway and not with the client.
func (c *call) beside(one *shadow.Call, question *http.Request) {
	ctx, leave, open := c.gateway.enter(question.Context())
	if !open {
		one.Answered()
		return
	}
	second := &call{gateway: c.gateway, set: c.set, request: question.WithContext(ctx), shadow: one}
	go func() {
		defer leave()
		defer one.Answered()
		second.serve(ctx, &shadow.Nowhere{})
	}()
}

// towards is the deployment of a request whose body begins like that.
func (s *settings) towards(r *http.Request, text []byte) *Deployment {
	if len(text) == 0 || len(s.Deployments) == 1 {
		return s.home(r)
	}
	asked, err := estimate.Read(bytes.NewReader(text), estimate.Options{})
	if d, _, ok := s.find(r.URL.Path, asked.Model); ok && err == nil {
		return d
	}
	return s.home(r)
}

// unsaid notes a refusal that nobody is told.
func (c *call) unsaid(r *refuse.Refusal) attempt.Outcome {
	no := shadow.No{Reason: r.Reason, Client: c.who.Client, Class: c.who.Class, Wait: r.Wait}
	if c.class != nil {
		no.Patience, no.Defers = c.class.MaxWait, c.class.Closed == circuit.Defer
	}
	// What the client was told is what it goes by.
	return attempt.OutcomeOf(c.shadow.Refused(no))
}
