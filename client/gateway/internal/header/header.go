// Package header is which headers go on, from a client to a provider and back.
package header

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

const (
	// Warning tells a client, or who runs it, what will go wrong one day.
	Warning = "X-Quorlease-Warning"
	// Fallback tells a client which deployment has answered in the place of its own.
	Fallback = "X-Quorlease-Fallback"
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
		"X-Retry-Budget-Exceeded", "X-Queue-Timeout", Warning, Fallback, "Ratelimit", "Ratelimit-Policy",
	}
)

// Set is a set of headers, in their canonical form.
type Set map[string]bool

func namesOf(lists ...[]string) Set {
	all := Set{}
	for _, name := range slices.Concat(lists...) {
		all[http.CanonicalHeaderKey(name)] = true
	}
	return all
}

// held are the headers of an answer that no client gets.
var held = namesOf(hop, theirs, ours)

// Kept are the headers of a request that no provider gets, with some more.
func Kept(more []string) Set { return namesOf(hop, between, more) }

// Passable are the headers of an answer that go to the client.
func Passable(answer *http.Response) http.Header {
	out := Without(answer.Header, held)
	if answer.ContentLength >= 0 {
		out["Content-Length"] = []string{strconv.FormatInt(answer.ContentLength, 10)}
	}
	return out
}

// Without is a copy of headers without those of a connection and some others. It shares their
// values, which nobody changes.
func Without(h http.Header, some Set) http.Header {
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
