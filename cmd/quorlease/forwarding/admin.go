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

// newAdmin answers who asks about the gateway itself. It changes nothing.
func (r *running) newAdmin(logger hclog.Logger) *http.Server {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		gatewayprom.New(r.gateway, nil), clientprom.New(r.authority, nil),
	)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", r.readyz)
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return &http.Server{
		Handler: mux, ReadHeaderTimeout: headersWithin, IdleTimeout: idleMax, MaxHeaderBytes: headersMax,
		ReadTimeout: headersWithin, WriteTimeout: headersWithin, ConnState: capped.States(adminMax),
		ErrorLog: logger.Named("admin").StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}),
	}
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
