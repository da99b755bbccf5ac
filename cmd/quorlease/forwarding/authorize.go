package forwarding

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorlease/quorlease/api/capped"
	"github.com/quorlease/quorlease/client/gateway/gate"
	"github.com/quorlease/quorlease/client/gateway/refuse"
	"github.com/quorlease/quorlease/client/gateway/who"
)

// routeHeader is what a proxy calls the route, for limits to match.
const routeHeader = "X-Quorlease-Route"

// book is who asks, as the file says it now.
type book struct{ atomic.Pointer[who.Book] }

// Identify says who sent a request.
func (b *book) Identify(r *http.Request) (who.Identity, *refuse.Refusal) { return b.Load().Identify(r) }

// newGate is what decides for proxies that ask before they forward by themselves.
func (o *Options) newGate(made *assembled) (*gate.Gate, error) {
	c := &o.file.Gateway
	return gate.New(gate.Config{
		Authority: made.authority, Who: &made.book, Price: priceOf,
		Attempts: c.Attempts, Hashes: c.Hashes, Charges: c.Charges, Markers: c.Markers, Draw: c.Draw,
	})
}

// methods are those that limits can match. Others are one, so that who asks does not make kinds of
// work as he likes.
var methods = map[string]bool{
	http.MethodGet: true, http.MethodHead: true, http.MethodPost: true, http.MethodPut: true, http.MethodPatch: true,
	http.MethodDelete: true, http.MethodOptions: true,
}

// priceOf is what a request is for limits, beside its client and tenant.
func priceOf(_ context.Context, c *gate.Call) gate.Price {
	method := "other"
	if methods[c.Method] {
		method = c.Method
	}
	attributes := map[string]string{"method": method}
	if route := c.Request.Header.Get(routeHeader); route != "" {
		attributes["route"] = route
	}
	return gate.Price{Attributes: attributes}
}

// newAuthorizer answers proxies.
func (r *running) newAuthorizer(logger hclog.Logger) *http.Server {
	nginx, others := r.gate.AuthRequest(), r.gate.Authorize()
	return &http.Server{
		// Paths behind a prefix are a client's: they are not put right, nor redirected.
		Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			switch path := q.URL.Path; {
			case path == "/auth_request":
				nginx.ServeHTTP(w, q)
			case path == "/authorize", strings.HasPrefix(path, "/authorize/"):
				others.ServeHTTP(w, q)
			default:
				http.NotFound(w, q)
			}
		}),
		ReadHeaderTimeout: headersWithin, IdleTimeout: idleMax, MaxHeaderBytes: headersMax,
		ReadTimeout: headersWithin, WriteTimeout: headersWithin, ConnState: capped.States(connectionsMax),
		ErrorLog: logger.Named("authorize").StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}),
	}
}

// gateFigures count what proxies were told.
func gateFigures(g *gate.Gate) []prometheus.Collector {
	var all []prometheus.Collector
	for outcome, read := range map[string]func(gate.Stats) uint64{
		"passed":    func(s gate.Stats) uint64 { return s.Passed },
		"refused":   func(s gate.Stats) uint64 { return s.Refused },
		"unlimited": func(s gate.Stats) uint64 { return s.Unlimited },
	} {
		all = append(all, prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "quorlease_gateway_authorized_total", ConstLabels: prometheus.Labels{"outcome": outcome},
			Help: "Requests that a proxy has asked about, by what it was told; " +
				"unlimited are those of passed that no limit fits.",
		}, func() float64 { return float64(read(g.Stats())) }))
	}
	return all
}
