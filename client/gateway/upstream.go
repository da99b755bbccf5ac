package gateway

import (
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/quorlease/quorlease/client/gateway/provider"
)

// hop are the headers of a connection, which end with it (RFC 9110, section 7.6.1).
var hop = []string{
	"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade",
}

// credentials are the headers that SDKs put keys into.
var credentials = []string{"Authorization", "X-Api-Key", "Api-Key"}

// target is the address that a request goes to.
func (c *call) target() string {
	to := *c.deployment.Upstream
	to = *to.JoinPath(c.request.URL.EscapedPath())
	to.RawQuery = c.request.URL.RawQuery
	return to.String()
}

// headers are those of a request that is sent: the client's, without what is between it and
// the gateway, and with what the provider wants.
func (c *call) headers(to *http.Request) {
	to.Header = withoutHop(c.request.Header)
	for _, name := range c.gateway.config.Who.Headers() {
		to.Header.Del(name)
	}
	to.Header.Del("X-Coalesce")
	// What is passed on is looked at.
	to.Header.Set("Accept-Encoding", "identity")
	if c.who.Keyed || c.deployment.Key != "" {
		for _, name := range credentials {
			to.Header.Del(name)
		}
	}
	if key := c.deployment.Key; key != "" {
		switch c.deployment.Provider.Name {
		case provider.NameAzure:
			to.Header.Set("Api-Key", key)
		case provider.NameAnthropic:
			to.Header.Set("X-Api-Key", key)
		default:
			to.Header.Set("Authorization", "Bearer "+key)
		}
	}
	for name, values := range c.deployment.Header {
		to.Header[http.CanonicalHeaderKey(name)] = slices.Clone(values)
	}
	if _, there := to.Header["User-Agent"]; !there {
		// Nobody's, rather than Go's.
		to.Header.Set("User-Agent", "")
	}
}

// passable are the headers of an answer that go to the client.
func passable(h http.Header) http.Header { return withoutHop(h) }

// withoutHop is a copy without the headers of a connection.
func withoutHop(h http.Header) http.Header {
	out := h.Clone()
	for _, listed := range h.Values("Connection") {
		for name := range strings.SplitSeq(listed, ",") {
			out.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range hop {
		out.Del(name)
	}
	return out
}

// isUnsent says whether an error was there before anything could be sent.
func isUnsent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}
