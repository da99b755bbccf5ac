package httpapi

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/quorlease/quorlease/api/limitsfile"
	"github.com/quorlease/quorlease/api/server"
)

// Bodies of one operation and of a whole limits file, in bytes.
const (
	operationMax = 64 << 10
	applyMax     = limitsfile.FileMax
)

// limitPath is the path of one limit; its name is the rest.
const limitPath = "/v1/limits/"

const (
	admission = "/quorlease.v1.Admission/"
	limits    = "/quorlease.v1.Limits/"
	clusters  = "/quorlease.v1.Cluster/"
)

// table says what is served where. A path that is not in it, letter by letter,
// is not served.
func (h *handler) table(gatherer prometheus.Gatherer) map[string]methods {
	post := func(call string) methods { return methods{http.MethodPost: h.body(call, operationMax)} }
	get := func(call string) methods { return methods{http.MethodGet: h.query(call)} }
	return map[string]methods{
		"/v1/admission:acquire": post(admission + "Acquire"),
		"/v1/admission:settle":  post(admission + "Settle"),
		"/v1/admission:release": post(admission + "Release"),
		"/v1/admission:renew":   post(admission + "Renew"),
		"/v1/admission:report":  post(admission + "Report"),
		"/v1/admission:peek":    post(admission + "Peek"),

		"/v1/limits": get(limits + "List"),
		limitPath: {
			http.MethodGet:    h.query(limits + "List"),
			http.MethodDelete: h.query(limits + "Delete"),
		},
		"/v1/limits:apply":   {http.MethodPost: h.apply},
		"/v1/limits:adjust":  post(limits + "Adjust"),
		"/v1/limits:inspect": get(limits + "Inspect"),
		"/v1/limits:history": get(limits + "History"),
		"/v1/limits:keys":    get(limits + "Keys"),

		"/v1/cluster":                     get(clusters + "Status"),
		"/v1/cluster:add":                 post(clusters + "Add"),
		"/v1/cluster:remove":              post(clusters + "Remove"),
		"/v1/cluster:promote":             post(clusters + "Promote"),
		"/v1/cluster:demote":              post(clusters + "Demote"),
		"/v1/cluster:transfer-leadership": post(clusters + "TransferLeadership"),

		"/v1/cluster/state": get(clusters + "State"),
		"/v1/clients":       get("/quorlease.v1.Clients/List"),
		"/v1/usage":         get("/quorlease.v1.UsageBook/Query"),
		"/v1/events":        {http.MethodGet: h.events},
		"/v1/overview":      {http.MethodGet: h.overview},

		"/v1/overview:watch": {http.MethodGet: h.overviews},

		"/healthz": {http.MethodGet: h.healthz, http.MethodHead: h.healthz},
		"/readyz":  {http.MethodGet: h.readyz, http.MethodHead: h.readyz},
		"/metrics": {http.MethodGet: h.metrics(gatherer)},
	}
}

func (h *handler) route(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	if strings.HasPrefix(path, limitPath) && len(path) > len(limitPath) {
		path = limitPath
	} else if path == limitPath {
		path = ""
	}
	way, known := h.routes[path]
	if !known {
		fail(w, fmt.Errorf("%w: %s", server.ErrPath, limitsfile.Quote(r.URL.Path)))
		return
	}
	serve, known := way[r.Method]
	if !known {
		w.Header().Set("Allow", strings.Join(slices.Sorted(maps.Keys(way)), ", "))
		fail(w, fmt.Errorf("%w: %s", server.ErrMethod, limitsfile.Quote(r.Method)))
		return
	}
	serve(w, r)
}

// healthz says that the process is alive, and nothing else.
func (h *handler) healthz(w http.ResponseWriter, r *http.Request) {
	if err := h.api.Allow(r.Context(), server.MethodHealth); err != nil {
		fail(w, err)
		return
	}
	writeBody(w, http.StatusOK, []byte(`{"alive":true}`))
}

// readyz says whether there is a leader and this node has caught up.
func (h *handler) readyz(w http.ResponseWriter, r *http.Request) {
	if err := h.api.Allow(r.Context(), server.MethodHealth); err != nil {
		fail(w, err)
		return
	}
	ready, reason := h.api.Readiness()
	code := http.StatusOK
	if !ready {
		code = http.StatusServiceUnavailable
	}
	writeBody(w, code, fmt.Appendf(nil, `{"ready":%t,"reason":%q}`, ready, reason))
}

// How many may read the metrics at once, and for how long.
const (
	metricsAtOnce = 4
	metricsWithin = 10 * time.Second
)

func (h *handler) metrics(gatherer prometheus.Gatherer) http.HandlerFunc {
	inner := promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{
		MaxRequestsInFlight: metricsAtOnce, Timeout: metricsWithin, ErrorHandling: promhttp.ContinueOnError,
	})
	return func(w http.ResponseWriter, r *http.Request) {
		if err := h.api.Allow(r.Context(), server.MethodMetrics); err != nil {
			fail(w, err)
			return
		}
		inner.ServeHTTP(w, r)
	}
}
