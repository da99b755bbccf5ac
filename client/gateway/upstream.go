package gateway

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/quorlease/quorlease/client/gateway/fallback"
	"github.com/quorlease/quorlease/client/gateway/provider"
	"github.com/quorlease/quorlease/client/gateway/refuse"
	"github.com/quorlease/quorlease/client/gateway/who"
)

// hop are the headers of a connection, which end with it (RFC 9110, section 7.6.1).
var hop = []string{
	"Connection", "Expect", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te",
	"Trailer", "Transfer-Encoding", "Upgrade",
}

// between are headers that are between a client, what stands before the gateway, and the
// gateway.
var between = []string{
	"Cookie", "Forwarded", "Via", "X-Coalesce", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Port",
	"X-Forwarded-Proto", "X-Forwarded-Server", "X-Real-Ip",
}

// theirs are headers of a provider's answer that are about its site and account, and ours
// those that say what only the gateway says. There is one length, whatever was said.
var (
	theirs = []string{
		"Alt-Svc", "Anthropic-Organization-Id", "Content-Length", "Openai-Organization", "Openai-Project", "Set-Cookie",
		"Strict-Transport-Security",
	}
	ours = []string{
		"X-Retry-Budget-Exceeded", "X-Queue-Timeout", warningHeader, fallbackHeader, "Ratelimit", "Ratelimit-Policy",
	}
)

// headerSet is a set of headers, in their canonical form.
type headerSet map[string]bool

func namesOf(lists ...[]string) headerSet {
	all := headerSet{}
	for _, name := range slices.Concat(lists...) {
		all[http.CanonicalHeaderKey(name)] = true
	}
	return all
}

// held are the headers of an answer that no client gets.
var held = namesOf(hop, theirs, ours)

const keyOfGoogle = "X-Goog-Api-Key"

// keys is where each provider's clients put their keys.
var keys = map[string][]string{
	provider.NameAzure:     {"Api-Key", "Authorization"},
	provider.NameAnthropic: {"X-Api-Key", "Authorization"},
	provider.NameGemini:    {keyOfGoogle, "Authorization"},
	provider.NameVertex:    {"Authorization", keyOfGoogle},
}

// keysOf is where the clients of a deployment's provider put their keys.
func (d *Deployment) keysOf() []string {
	if list, ok := keys[d.Provider.Name]; ok {
		return list
	}
	return []string{"Authorization"}
}

// target is the address that a request goes to: what was looked at, behind what is
// configured.
func (c *call) target() *url.URL {
	to := *c.deployment.Upstream
	from := c.request.URL
	if c.home != nil && c.route.Deployment != "" {
		asked, _ := c.deployment.Provider.Route(from.Path)
		from = fallback.Repath(from, asked.Deployment, c.route.Deployment)
	}
	to.Path = strings.TrimSuffix(to.Path, "/") + from.Path
	to.RawPath = strings.TrimSuffix(c.deployment.Upstream.EscapedPath(), "/") + from.EscapedPath()
	to.RawQuery = from.RawQuery
	if slices.Contains(c.deployment.keysOf(), keyOfGoogle) && (c.who.Keyed || c.deployment.Key != "") {
		to.RawQuery = withoutKey(from.RawQuery)
	}
	return &to
}

// withoutKey is a query without the key that clients of Google's may put there.
func withoutKey(query string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(query, "&"), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(name)
		return err != nil || name == "key" || name == "access_token"
	}), "&")
}

// signed is the refusal of a request whose signature (AWS's version 4) can't hold: it is of the
// host, and the provider is at another one. A deployment with a key needs none.
func (c *call) signed() *refuse.Refusal {
	d := c.deployment
	if d.Key != "" || c.request.Host == d.Upstream.Host ||
		!strings.HasPrefix(c.request.Header.Get("Authorization"), "AWS4-") {
		return nil
	}
	return &refuse.Refusal{
		Reason: refuse.Malformed, Param: "authorization",
		Detail: fmt.Sprintf("authorization: signed for the host %.128q, and the provider is at %.128q: "+
			"use an API key of Bedrock (AWS_BEARER_TOKEN_BEDROCK), or give the deployment one", c.request.Host, d.Upstream.Host),
	}
}

// isForeign says whether the client's own account is used.
func (c *call) isForeign() bool {
	own := func(name string) bool { return c.request.Header.Get(name) != "" }
	return c.deployment.Key == "" && c.home == nil && !c.who.Keyed && slices.ContainsFunc(c.deployment.keysOf(), own)
}

// headers are those of a request that is sent: the client's, without what is between it and
// the gateway, and with what the provider wants.
func (c *call) headers() http.Header {
	to := without(c.request.Header, c.set.kept)
	// What is passed on is looked at.
	to["Accept-Encoding"] = identity
	wanted := c.deployment.keysOf()
	for _, name := range who.Credentials() {
		// A key goes to the provider whose clients have such keys, and nowhere else.
		if c.who.Keyed || c.home != nil || !slices.Contains(wanted, name) {
			delete(to, name)
		}
	}
	if c.who.Keyed {
		// It belongs to a signature that does not go on either.
		delete(to, "X-Amz-Security-Token")
	}
	c.deployment.sign(to)
	if _, there := to["User-Agent"]; !there {
		// Nobody's, rather than Go's.
		to["User-Agent"] = nobody
	}
	return to
}

// sign puts in what is configured: the key, in the place of all others, and headers.
func (d *Deployment) sign(to http.Header) {
	if key := d.Key; key != "" {
		for _, name := range who.Credentials() {
			delete(to, name)
		}
		// It belongs to a signature that does not go on either.
		delete(to, "X-Amz-Security-Token")
		name := d.keysOf()[0]
		if name == "Authorization" {
			key = "Bearer " + key
		}
		to[name] = []string{key}
	}
	for name, values := range d.Header {
		to[http.CanonicalHeaderKey(name)] = slices.Clone(values)
	}
}

// Values of headers that nobody changes.
var identity, nobody = []string{"identity"}, []string{""}

// passable are the headers of an answer that go to the client.
func passable(answer *http.Response) http.Header {
	out := without(answer.Header, held)
	if answer.ContentLength >= 0 {
		out["Content-Length"] = []string{strconv.FormatInt(answer.ContentLength, 10)}
	}
	return out
}

// without is a copy of headers without those of a connection and some others. It shares their
// values, which nobody changes.
func without(h http.Header, some headerSet) http.Header {
	out := make(http.Header, len(h)+3)
	for name, values := range h {
		if !some[name] {
			out[name] = slices.Clip(values)
		}
	}
	for _, listed := range h["Connection"] {
		for name := range strings.SplitSeq(listed, ",") {
			out.Del(strings.TrimSpace(name))
		}
	}
	return out
}
