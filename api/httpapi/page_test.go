package httpapi_test

import (
	"net"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc/peer"

	"github.com/quorlease/quorlease/api/dashboard"
	"github.com/quorlease/quorlease/api/httpapi"
	"github.com/quorlease/quorlease/api/server"
)

// The page has a policy of its own, and the same guards as everything else.
func TestThePageIsGuarded(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	stranger := start(t, func(c *server.Config, _ *httpapi.Config) {
		c.Identify = func(*peer.Peer) (server.Identity, error) {
			return server.Loopback(&peer.Peer{Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}})
		}
	})
	for _, file := range dashboard.Files() {
		code, header, body := s.do(request{method: "GET", path: file.Path})
		if code != http.StatusOK || body == "" || header.Get("Content-Security-Policy") != dashboard.Policy {
			t.Errorf("%s: %d, %d bytes, policy %q", file.Path, code, len(body), header.Get("Content-Security-Policy"))
		}
		if header.Get("X-Content-Type-Options") != "nosniff" || header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %v", file.Path, header)
		}
		kept := request{method: "GET", path: file.Path, headers: map[string]string{"If-None-Match": header.Get("ETag")}}
		if code, _, _ := s.do(kept); code != http.StatusNotModified {
			t.Errorf("%s once more: %d", file.Path, code)
		}
		if code, _, _ := s.do(request{method: "HEAD", path: file.Path}); code != http.StatusOK {
			t.Errorf("HEAD %s: %d", file.Path, code)
		}
		if code, _, _ := s.do(request{method: "POST", path: file.Path}); code != http.StatusMethodNotAllowed {
			t.Errorf("POST %s: %d", file.Path, code)
		}
		code, header, body = s.do(request{method: "GET", path: file.Path, host: "evil.example"})
		if code != http.StatusMisdirectedRequest || strings.Contains(header.Get("Content-Type"), "html") {
			t.Errorf("%s at a foreign host: %d %s", file.Path, code, body)
		}
		if code, _, body := stranger.do(request{method: "GET", path: file.Path}); code != http.StatusUnauthorized {
			t.Errorf("G11 %s from elsewhere: %d %s", file.Path, code, body)
		}
	}
	for _, path := range []string{"/assets/", "/assets/app.go", "/assets/../v1/limits", "/index.html", "//"} {
		if code, _, body := s.do(request{method: "GET", path: path}); code != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
}

// A page of another origin is answered nothing, also where it only asks; whoever
// follows a link that stands there is.
func TestForeignOriginsReadNothing(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, test := range []struct {
		headers map[string]string
		want    int
	}{
		{nil, 200},
		{map[string]string{"Origin": s.url}, 200},
		{map[string]string{"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}, 200},
		{map[string]string{"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, 200},
		{map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, 200},
		{map[string]string{"Origin": "http://evil.example"}, 403},
		{map[string]string{"Origin": "null"}, 403},
		{map[string]string{"Origin": s.url + "0"}, 403},
		{map[string]string{"Origin": "http://evil.example", "Connection": "Upgrade", "Upgrade": "websocket"}, 403},
		{map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}, 403},
		{map[string]string{"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"}, 403},
		{map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}, 403},
		{map[string]string{
			"Origin": "null", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document",
		}, 403},
	} {
		for _, path := range []string{"/", "/assets/app.js", "/v1/overview", "/v1/clients", "/metrics"} {
			code, header, body := s.do(request{method: "GET", path: path, headers: test.headers})
			if code != test.want {
				t.Errorf("%s with %v: %d, want %d: %.200s", path, test.headers, code, test.want, body)
			}
			if got := header.Get("Cross-Origin-Resource-Policy"); got != "same-origin" {
				t.Errorf("%s with %v: other origins may use it: %q", path, test.headers, got)
			}
		}
	}
}
