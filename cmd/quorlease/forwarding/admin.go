package forwarding

import (
	"fmt"
	"net/http"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/quorlease/quorlease/api/capped"
	"github.com/quorlease/quorlease/client/clientprom"
	"github.com/quorlease/quorlease/client/gateway/gatewayprom"
)

// newAdmin answers who asks about the gateway itself, and hears that a spend cap was seen
// to. Pages of browsers may not say that.
func (r *running) newAdmin(logger hclog.Logger) *http.Server {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		gatewayprom.New(r.gateway, nil), clientprom.New(r.authority, nil),
	)
	if r.gate != nil {
		registry.MustRegister(gateFigures(r.gate)...)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", r.readyz)
	mux.HandleFunc("POST /cleared", r.cleared)
	mux.HandleFunc("GET /shadow", r.shadow)
	all := prometheus.Gatherers{registry}
	if r.own != nil {
		all = append(all, r.own.Gatherer())
	}
	mux.Handle("GET /metrics", promhttp.HandlerFor(all, promhttp.HandlerOpts{}))
	return &http.Server{
		Handler:           http.NewCrossOriginProtection().Handler(mux),
		ReadHeaderTimeout: headersWithin, IdleTimeout: idleMax, MaxHeaderBytes: headersMax,
		ReadTimeout: headersWithin, WriteTimeout: headersWithin, ConnState: capped.States(adminMax),
		ErrorLog: logger.Named("admin").StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}),
	}
}

// cleared takes in that the provider works for a deployment again whose money was used up.
func (r *running) cleared(w http.ResponseWriter, q *http.Request) {
	name := q.URL.Query().Get("deployment")
	if !r.gateway.Cleared(name) {
		http.Error(w, fmt.Sprintf("deployment: %q is not configured", name), http.StatusNotFound)
		return
	}
	r.logger.Info("a spend cap was cleared by hand", "deployment", name)
	w.WriteHeader(http.StatusNoContent)
}

// readyz says whether requests may be sent here: not once it was told to stop. That no node
// answers is no reason, since it decides by itself then; it is said all the same.
func (r *running) readyz(w http.ResponseWriter, _ *http.Request) {
	switch {
	case r.draining.Load():
		http.Error(w, "told to stop", http.StatusServiceUnavailable)
	case r.authority.FailOpen():
		fmt.Fprintln(w, "ok, and no node answers")
	default:
		fmt.Fprintln(w, "ok")
	}
}
