package httpapi

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/quorlease/quorlease/api/limitsfile"
	"github.com/quorlease/quorlease/api/server"
)

// guarded keeps out what a browser can be made to send: requests for another
// page's name, and changes for another page's origin.
func (h *handler) guarded() http.Handler {
	origin := http.NewCrossOriginProtection()
	origin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fail(w, fmt.Errorf("%w: %s", server.ErrOrigin, limitsfile.Quote(r.Header.Get("Origin"))))
	}))
	inner := origin.Handler(http.HandlerFunc(h.route))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Cache-Control", "no-store")
		header.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		header.Set("X-Content-Type-Options", "nosniff")
		if !h.allowed(r.Host) {
			fail(w, fmt.Errorf("%w: %s", server.ErrHost, limitsfile.Quote(r.Host)))
			return
		}
		inner.ServeHTTP(w, caller(r))
	})
}

func allowedHosts(names []string) map[string]bool {
	hosts := map[string]bool{"localhost": true}
	for _, name := range names {
		hosts[strings.ToLower(name)] = true
	}
	return hosts
}

// allowed says whether a request's Host is a name of this node. A number always
// is: what a page can make point here is a name.
func (h *handler) allowed(host string) bool {
	name := host
	if without, _, err := net.SplitHostPort(host); err == nil {
		name = without
	}
	if _, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil {
		return true
	}
	return h.hosts[strings.ToLower(strings.TrimSuffix(name, "."))]
}
