package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/quorlease/quorlease/api/httpapi"
	"github.com/quorlease/quorlease/api/server"
	"github.com/quorlease/quorlease/api/server/servertest"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// site is a node with its HTTP server on a loopback port.
type site struct {
	t      *testing.T
	node   *servertest.Node
	api    *server.Server
	url    string
	client *http.Client
}

func start(t *testing.T, change func(*server.Config, *httpapi.Config)) *site {
	t.Helper()
	node := servertest.New()
	config := server.DefaultConfig()
	config.Node, config.Events = node, node.Ring
	web := httpapi.DefaultConfig()
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "quorlease_leases", Help: "Leases."},
		func() float64 { return 3 }))
	web.Gatherer, web.Hosts = registry, []string{"node1.example"}
	if change != nil {
		change(&config, &web)
	}
	api, err := server.New(config)
	if err != nil {
		t.Fatal(err)
	}
	web.API = api
	srv, err := httpapi.New(web)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = srv.Serve(l) })
	transport := &http.Transport{}
	t.Cleanup(func() {
		api.Drain()
		transport.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := srv.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		serving.Wait()
		_ = api.Close()
		node.Ring.Close()
	})
	client := &http.Client{Transport: transport, Timeout: 30 * time.Second}
	return &site{t, node, api, "http://" + l.Addr().String(), client}
}

// request is one request with what makes it special.
type request struct {
	method, path, kind, body, host string
	headers                        map[string]string
}

// do sends a request and returns the status, the headers and the body.
func (s *site) do(r request) (int, http.Header, string) {
	s.t.Helper()
	req, err := http.NewRequest(r.method, s.url+r.path, strings.NewReader(r.body))
	if err != nil {
		s.t.Fatal(err)
	}
	if r.kind != "" {
		req.Header.Set("Content-Type", r.kind)
	}
	for name, value := range r.headers {
		req.Header.Set(name, value)
	}
	if r.host != "" {
		req.Host = r.host
	}
	resp, err := s.client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(body)
}

func (s *site) post(path, body string) (int, http.Header, string) {
	s.t.Helper()
	return s.do(request{method: "POST", path: path, kind: "application/json", body: body})
}

// golden compares with testdata/name.golden, or writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (go test -update rewrites it): -want +got\n%s", file, diff)
	}
}

// pretty indents JSON for the golden files.
func pretty(t *testing.T, body string) string {
	t.Helper()
	var out bytes.Buffer
	if err := json.Indent(&out, []byte(body), "", "  "); err != nil {
		t.Fatalf("%v in %q", err, body)
	}
	return out.String()
}

// transcript is a request and its answer, as a golden file has them.
func (s *site) transcript(r request) string {
	s.t.Helper()
	code, header, body := s.do(r)
	var out strings.Builder
	fmt.Fprintf(&out, "%s %s\n", r.method, r.path)
	if r.body != "" {
		fmt.Fprintf(&out, "Content-Type: %s\n\n%s\n", r.kind, strings.TrimSpace(r.body))
	}
	fmt.Fprintf(&out, "\n%d %s\n", code, http.StatusText(code))
	for _, name := range []string{"Allow", "Content-Type", "Retry-After"} {
		if value := header.Get(name); value != "" {
			fmt.Fprintf(&out, "%s: %s\n", name, value)
		}
	}
	return out.String() + "\n" + pretty(s.t, body)
}
