package dashboard_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorlease/quorlease/api/dashboard/browsertest"
	"github.com/quorlease/quorlease/api/httpapi"
	"github.com/quorlease/quorlease/api/server"
	"github.com/quorlease/quorlease/api/server/servertest"
)

// realNode is the HTTP server of a node, with all its guards. It returns its port.
func realNode(t *testing.T) string {
	t.Helper()
	node := servertest.New()
	config := server.DefaultConfig()
	config.Node, config.Events = node, node.Ring
	api, err := server.New(config)
	if err != nil {
		t.Fatal(err)
	}
	web := httpapi.DefaultConfig()
	web.API, web.Gatherer = api, prometheus.NewRegistry()
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
	t.Cleanup(func() {
		api.Drain()
		_ = srv.Close()
		serving.Wait()
		_ = api.Close()
		node.Ring.Close()
	})
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// A browser is led here by a name that somebody else owns, or by a page of
// somebody else.
func TestABrowserOfSomebodyElse(t *testing.T) {
	tab := newTab(t)
	port := realNode(t)
	ours := "http://127.0.0.1:" + port
	t.Run("a_foreign_host_gets_no_page", func(t *testing.T) {
		for url, want := range map[string]int{
			"http://" + evil + ":" + port: 421, "http://localhost:" + port: 200, ours: 200,
		} {
			code, err := tab.Visit(url + "/")
			if err != nil || code != want {
				t.Errorf("%s: %d, want %d: %v", url, code, want, err)
			}
		}
	})
	theirs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(`<!doctype html><title>x</title><iframe id="f" src="` + ours + `/"></iframe>`))
	}))
	t.Cleanup(theirs.Close)
	if _, err := tab.Visit(strings.Replace(theirs.URL, "127.0.0.1", evil, 1)); err != nil {
		t.Fatal(err)
	}
	const asJSON = `{method: "POST", headers: {"Content-Type": "application/json"}, body: "{}"}`
	t.Run("a_foreign_origin_reads_and_changes_nothing", func(t *testing.T) {
		for _, request := range []string{
			`fetch("` + ours + `/v1/limits")`, `fetch("` + ours + `/")`,
			`fetch("` + ours + `/v1/limits:apply", ` + asJSON + `)`,
			`import("` + ours + `/assets/app.js")`,
		} {
			got, err := browsertest.Ask[string](tab, request+`.then(() => "got it", (e) => "refused")`)
			if err != nil || got != "refused" {
				t.Errorf("%s: %s, %v", request, got, err)
			}
		}
		const blind = `{method: "POST", mode: "no-cors", body: "{}"}`
		sent, err := browsertest.Ask[string](tab, `fetch("`+ours+`/v1/limits:apply", `+blind+`)
			.then((r) => r.type, (e) => "refused")`)
		if err != nil || sent == "basic" {
			t.Errorf("a change that asks for no leave: %s, %v", sent, err)
		}
	})
	t.Run("nobody_frames_it", func(t *testing.T) {
		framed, err := browsertest.Ask[bool](tab, `document.getElementById("f").contentDocument === null`)
		if err != nil || !framed {
			t.Errorf("%v, %v", framed, err)
		}
		if got := strings.Join(tab.Troubles(), "\n"); !strings.Contains(got, "frame-ancestors") {
			t.Errorf("the browser did not refuse the frame: %s", got)
		}
	})
}
