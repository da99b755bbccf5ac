package file

import (
	"fmt"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/quorlease/quorlease/api/limitsfile/strict"
	"github.com/quorlease/quorlease/api/limitsfile/written"
	"github.com/quorlease/quorlease/client/gateway"
	"github.com/quorlease/quorlease/client/gateway/estimate"
	"github.com/quorlease/quorlease/client/gateway/fallback"
	"github.com/quorlease/quorlease/client/gateway/provider"
	"github.com/quorlease/quorlease/client/gateway/who"
	"github.com/quorlease/quorlease/client/names"
)

const (
	deploymentsMax = 256
	modelsMax      = 1024
	attributesMax  = 26
	headerMax      = 8 << 10
	countMax       = 1 << 53
)

// ownAttributes are those that the gateway itself says of each request.
var ownAttributes = []string{"client", "tenant", "deployment", "provider", "model", "kind", fallback.Attribute}

// ownHeaders are those that the gateway itself says of each request, or that belong to a
// connection.
var ownHeaders = []string{
	"Accept-Encoding", "Connection", "Content-Length", "Host", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding",
	"Upgrade",
}

func (r *reader) deployments(n ast.Node, f *File) {
	items := r.Items(n, "deployments")
	if len(items) == 0 || len(items) > deploymentsMax {
		r.FailNode(n, "deployments", "%d are out of range 1..%d", len(items), deploymentsMax)
		return
	}
	f.Sources = map[string]Source{}
	first := map[string]int{}
	for i, item := range items {
		at := fmt.Sprintf("deployments[%d]", i)
		d := r.deployment(item, at, f)
		if before, twice := first[d.Name]; twice {
			r.Fail(at+".name", "%s is used twice, first by deployments[%d]", written.Quote(d.Name), before)
		}
		first[d.Name] = i
		f.Gateway.Deployments = append(f.Gateway.Deployments, d)
	}
	r.joined(f)
}

func (r *reader) deployment(n ast.Node, path string, f *File) (d gateway.Deployment) {
	fields := r.Fields(n, path, "name", "provider", "upstream", "models", "key_file", "key_env", "header", "per_minute",
		"source", "output_max", "attributes", "no_usage", "price", "latency", "fallbacks")
	if !strict.IsMapping(n) {
		return d
	}
	d.Name = r.Text(fields["name"], path+".name")
	if problem := names.LimitProblem(d.Name); problem != "" {
		r.FailNode(fields["name"], path+".name", "%s", problem)
	}
	d.Upstream = r.upstream(fields["upstream"], path+".upstream")
	d.Provider = r.provider(fields["provider"], path+".provider", d.Upstream)
	d.Models = r.texts(fields["models"], path+".models", modelsMax, modelProblem)
	d.Key = r.key(fields, path)
	d.Header = r.header(fields["header"], path+".header")
	d.PerMinute = r.perMinute(fields["per_minute"], path+".per_minute")
	d.OutputMax = r.number(fields["output_max"], path+".output_max", 0, estimate.CountMax)
	d.Attributes = r.attributes(fields["attributes"], path+".attributes")
	d.Fallback = r.model(fields, path)
	d.NoUsage = r.Boolean(fields["no_usage"], path+".no_usage")
	if fields["source"] != nil {
		f.Sources[d.Name] = r.source(fields["source"], path+".source")
	}
	return d
}

// upstream reads where a provider is. What is absent is said by itself.
func (r *reader) upstream(n ast.Node, path string) *url.URL {
	if n == nil {
		r.Fail(path, "missing: https://api.openai.com, for example")
		return nil
	}
	u, problem := parseUpstream(r.Text(n, path))
	if problem != "" {
		r.FailNode(n, path, "%s", problem)
	}
	return u
}

// parseUpstream reads an address. The problem does not repeat one with a password.
func parseUpstream(s string) (*url.URL, string) {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		if strings.Contains(s, "@") {
			return nil, "is no http or https address"
		}
		return nil, written.Quote(s) + " is no http or https address"
	case u.User != nil:
		return nil, "has a user or a password, which belongs into key_file or key_env"
	case u.RawQuery != "" || u.Fragment != "":
		return nil, written.Quote(s) + " has more than a path"
	case !isPlain(u.Path):
		return nil, written.Quote(s) + " has a path with empty or dotted segments"
	}
	return u, ""
}

// isPlain says whether a path means the same to everybody.
func isPlain(path string) bool {
	rest := strings.TrimSuffix(strings.TrimPrefix(path, "/"), "/")
	if rest == "" {
		return path == "" || path == "/"
	}
	return !strings.Contains(rest, `\`) && !slices.ContainsFunc(strings.Split(rest, "/"), func(segment string) bool {
		return segment == "" || segment == "." || segment == ".."
	})
}

// provider reads which one answers; without a word, the one whose host it is.
func (r *reader) provider(n ast.Node, path string, upstream *url.URL) *provider.Table {
	var name string
	switch {
	case n != nil:
		name = r.Text(n, path)
	case upstream != nil:
		name = Guess(upstream.Hostname())
	default:
		return nil
	}
	table, err := provider.Named(name)
	if err != nil {
		r.FailNode(n, path, "%s: want one of %s", written.Quote(name), strings.Join(provider.Names(), ", "))
	}
	return table
}

func modelProblem(s string) string {
	if s == "" || len(s) > estimate.TextMax {
		return fmt.Sprintf("%s is not 1 to %d bytes", written.Quote(s), estimate.TextMax)
	}
	return ""
}

// key reads the provider's secret from where the file says it is.
func (r *reader) key(fields map[string]ast.Node, path string) string {
	file, variable := fields["key_file"], fields["key_env"]
	switch {
	case file != nil && variable != nil:
		r.Fail(path+".key_env", "there is key_file, too: want one of them")
	case file != nil:
		lines := r.secretFile(file, path+".key_file")
		if len(lines) > 1 {
			r.Fail(path+".key_file", "has %d lines: want one key", len(lines))
		}
		if len(lines) > 0 {
			return lines[0]
		}
	case variable != nil:
		name := r.text(variable, path+".key_env", fileProblem)
		value, there := r.secrets.LookupEnv(name)
		if !there {
			r.Fail(path+".key_env", "%s is not in the environment", written.Quote(name))
		} else if problem := secretProblem(value); problem != "" {
			r.Fail(path+".key_env", "%s: %s", written.Quote(name), problem)
		}
		return value
	}
	return ""
}

func (r *reader) header(n ast.Node, path string) http.Header {
	if n == nil {
		return nil
	}
	header := http.Header{}
	for _, e := range r.Entries(n, path, "headers by name, like {OpenAI-Organization: org-1}") {
		at := strict.Join(path, strict.Shortened(e.Key))
		name, value := textproto.CanonicalMIMEHeaderKey(e.Key), r.Text(e.Value, at)
		switch {
		case !isToken(e.Key):
			r.FailAt(e.At, at, "is no name of a header")
		case slices.Contains(who.Credentials(), name):
			r.FailAt(e.At, at, "is for a key, which belongs into key_file or key_env")
		case slices.Contains(ownHeaders, name):
			r.FailAt(e.At, at, "is the gateway's own")
		case header[name] != nil:
			r.FailAt(e.At, at, "set twice in one place")
		case len(value) > headerMax || strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c == 0x7f }):
			r.FailNode(e.Value, at, "%s is no value of a header", written.Quote(value))
		}
		header[name] = []string{value}
	}
	return header
}

// isToken says whether s is a token (RFC 9110, section 5.6.2).
func isToken(s string) bool {
	return s != "" && len(s) <= 128 && !strings.ContainsFunc(s, func(c rune) bool {
		return c <= ' ' || c > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c)
	})
}

func (r *reader) perMinute(n ast.Node, path string) map[string]int64 {
	if n == nil {
		return nil
	}
	known := []string{provider.Requests, provider.Tokens, provider.InputTokens, provider.OutputTokens}
	amounts := map[string]int64{}
	for name, node := range r.Fields(n, path, known...) {
		amounts[name] = r.number(node, path+"."+name, 1, countMax)
	}
	return amounts
}

func (r *reader) attributes(n ast.Node, path string) map[string]string {
	if n == nil {
		return nil
	}
	entries := r.Entries(n, path, "values by name, like {account: main}")
	if len(entries) > attributesMax {
		r.FailNode(n, path, "%d, more than %d", len(entries), attributesMax)
	}
	all := map[string]string{}
	for _, e := range entries {
		at := strict.Join(path, strict.Shortened(e.Key))
		if problem := names.DimensionProblem(e.Key); problem != "" {
			r.FailAt(e.At, at, "%s", problem)
		}
		if slices.Contains(ownAttributes, e.Key) {
			r.FailAt(e.At, at, "is the gateway's own, like %s", strings.Join(ownAttributes, ", "))
		}
		all[e.Key] = r.text(e.Value, at, names.ValueProblem)
	}
	return all
}

func (r *reader) source(n ast.Node, path string) Source {
	fields := r.Fields(n, path, "url", "verified_at")
	s := Source{URL: r.Text(fields["url"], path+".url"), On: r.Text(fields["verified_at"], path+".verified_at")}
	if _, err := time.Parse(time.DateOnly, s.On); err != nil {
		r.FailNode(fields["verified_at"], path+".verified_at", "%s is not a day like 2026-10-22", written.Quote(s.On))
	}
	return s
}
