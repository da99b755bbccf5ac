package gateway

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/quorlease/quorlease/client/gateway/fallback"
	"github.com/quorlease/quorlease/client/gateway/internal/address"
	"github.com/quorlease/quorlease/client/gateway/internal/header"
	"github.com/quorlease/quorlease/client/gateway/provider"
	"github.com/quorlease/quorlease/client/gateway/refuse"
	"github.com/quorlease/quorlease/client/gateway/who"
)

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
	own := slices.Contains(c.deployment.keysOf(), keyOfGoogle) && !c.who.Keyed && c.deployment.Key == ""
	if from.RawQuery != "" && (!own || c.home != nil) {
		to.RawQuery = address.WithoutKey(from.RawQuery)
	}
	return &to
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
	to := header.Without(c.request.Header, c.set.kept)
	// What is passed on is looked at.
	to["Accept-Encoding"] = identity
	wanted := c.deployment.keysOf()
	for _, name := range who.Credentials() {
		// A key goes to the provider whose clients have such keys, and nowhere else.
		if c.who.Keyed || c.home != nil || !slices.Contains(wanted, name) {
			delete(to, name)
		}
	}
	if c.who.Keyed || c.home != nil {
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
