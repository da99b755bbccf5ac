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
// page's name, and whatever another page asks for by itself.
func (h *handler) guarded() http.Handler {
	origin := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Cache-Control", "no-store")
		header.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("X-Content-Type-Options", "nosniff")
		switch {
		case !h.allowed(r.Host):
			fail(w, fmt.Errorf("%w: %s", server.ErrHost, limitsfile.Quote(r.Host)))
		case isForeign(origin, r):
			fail(w, fmt.Errorf("%w: %s", server.ErrOrigin, limitsfile.Quote(r.Header.Get("Origin"))))
		default:
			h.route(w, caller(r))
		}
	})
}

// isForeign says whether a page of another origin asks. What only reads is held to the
// same as what changes something, though no such page could see the answer: it could
// still take the places of those who watch, and learn from the time that it takes. A
// link that somebody follows is none of the page's doing.
func isForeign(origin *http.CrossOriginProtection, r *http.Request) bool {
	header := r.Header
	isRead := r.Method == http.MethodGet || r.Method == http.MethodHead
	isLink := header.Get("Sec-Fetch-Mode") == "navigate" && header.Get("Sec-Fetch-Dest") == "document"
	if isRead && isLink && header.Get("Origin") == "" {
		return false
	}
	return origin.Check(&http.Request{Method: http.MethodPost, Header: header, Host: r.Host, URL: r.URL}) != nil
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
