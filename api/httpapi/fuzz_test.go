package httpapi_test

import (
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorlease/quorlease/api/httpapi"
	"github.com/quorlease/quorlease/api/server"
	"github.com/quorlease/quorlease/api/server/servertest"
)

// FuzzRequest: whatever is sent to whatever path is answered, as JSON, and never
// as a bug of the server.
func FuzzRequest(f *testing.F) {
	for _, seed := range [][3]string{
		{"POST", "/v1/admission:acquire", `{"charges":[{"limit":"a","dimension":"requests","amount":"1"}]}`},
		{"POST", "/v1/admission:settle", `{"lease_id":"00112233445566778899aabbccddeeff","used":[{"dimension":"r"}]}`},
		{"POST", "/v1/limits:apply", `{"limits":[{"name":"b","unlimited":true}],"prune":true}`},
		{"POST", "/v1/limits:apply?prune=true", "limits: [{name: a, rate: {requests: 1/s}}]"},
		{"GET", "/v1/limits:inspect?limit=a&key=k", ""},
		{"DELETE", "/v1/limits/a?expected_revision=1", ""},
		{"GET", "/v1/clients?top=3", ""},
	} {
		f.Add(seed[0], seed[1], seed[2], strings.HasPrefix(seed[2], "limits"))
	}
	node := servertest.New()
	config := server.DefaultConfig()
	config.Node, config.Events = node, node.Ring
	config.Identify = server.Anyone
	api, err := server.New(config)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = api.Close() })
	web := httpapi.DefaultConfig()
	web.API, web.Gatherer = api, prometheus.NewRegistry()
	srv, err := httpapi.New(web)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, method, path, body string, yaml bool) {
		// A stream of events ends only when its reader goes.
		if strings.HasPrefix(path, "/v1/events") {
			return
		}
		r := httptest.NewRequest("GET", "/", strings.NewReader(body))
		r.Method, r.Host = method, "localhost"
		path, query, _ := strings.Cut(path, "?")
		r.URL.Path, r.URL.RawQuery = path, query
		r.Header.Set("Content-Type", "application/json")
		if yaml {
			r.Header.Set("Content-Type", "application/yaml")
		}
		w := httptest.NewRecorder()
		srv.Handler.ServeHTTP(w, r)
		answer, _ := io.ReadAll(w.Result().Body)
		if w.Code >= 500 && w.Code != 503 || len(answer) == 0 {
			t.Errorf("%s %q %q: %d %s", method, path, body, w.Code, answer)
		}
	})
}
