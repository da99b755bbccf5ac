package file_test

import (
	"strings"
	"testing"
)

// TestFallbackMistakes: what is wrong with prices, fallbacks and modes has its place.
func TestFallbackMistakes(t *testing.T) {
	t.Parallel()
	const price = "price: {input: 1, output: 1}, "
	// pair is a deployment a with fields of its own, and b.
	pair := func(a, b string) string {
		return deployed(a) + "  - {name: b, " + b + "}\n"
	}
	const other = "upstream: 'http://127.0.0.1:2', "
	for _, m := range []mistake{
		{"no price", deployed("price: {}"), "deployments[0].price: says nothing: {input: 2_500_000"},
		{"float", deployed("price: {input: 2.5}"), `deployments[0].price.input: "2.5": floats are not supported`},
		{"dear", deployed("price: {input: 1_000_000_000_001}"), "input: 1000000000001 is out of range 0..1000000000000"},
		{"slow", deployed("latency: 2h"), "deployments[0].latency: 2h0m0s is out of range 0s..1h0m0s"},
		{"unnamed", deployed("fallbacks: [{model: a}]"), "fallbacks[0].deployment: missing: the name of one"},
		{"unknown", deployed(price + "fallbacks: [{deployment: b}]"), `fallbacks[0].deployment: "b" is no deployment`},
		{"itself", deployed(price + "fallbacks: [{deployment: a}]"), `"a" can't stand in for itself`},
		{"a name", deployed(price + "fallbacks: [b]"), `fallbacks[0]: "b": want fields: deployment, model`},
		{
			"no price of its own", pair("fallbacks: [{deployment: b}]", other+price+"output_max: 1"),
			`deployments[0].price: is missing: what may go to fallbacks is a share of what "a" costs`,
		},
		{
			"no price of the other", pair(price+"fallbacks: [{deployment: b}]", "upstream: 'http://127.0.0.1:2'"),
			`"b" has no price: what it costs would be bounded by nothing`,
		},
		{
			"no bound", pair(price+"fallbacks: [{deployment: b}]", other+price),
			`"b" has no output_max: nobody can say what a request costs at most`,
		},
		{
			"another format", pair(price+"fallbacks: [{deployment: b}]", price+"upstream: 'https://api.anthropic.com'"),
			`"b" is of anthropic and "a" of compatible: requests of one can't be sent to the other`,
		},
		{"too many", deployed("fallbacks: [" + many(9, "{deployment: b}") + "]"), "deployments[0].fallbacks: 9, more than 8"},
		{"share", with("fallback: {share: 101%}"), `3:19: fallback.share: "101%" is out of range 0%..100%`},
		{"free", with("fallback: {free: much}"), `3:18: fallback.free: "much": want a whole number`},
		{"mode", with("classes: [{name: a, mode: hope}]"), `classes[0].mode: "hope": want one of jitter, fixed, `},
		{"delay", with("classes: [{name: a, delay: 1s}]"), "classes[0].delay: delay 1s: only a class of mode fixed"},
		{"long delay", with("classes: [{name: a, mode: fixed, delay: 2m}]"), "classes[0].delay: delay 2m0s: must be from 0s"},
		{"shed", with("classes: [{name: a, mode: defer, closed: shed}]"), "classes[0].closed: shed is not what mode defer "},
		{"attribute", deployed("attributes: {fallback: a}"), "attributes.fallback: is the gateway's own"},
	} {
		t.Run(m.name, m.check)
	}
}

// many is a list of so many of the same.
func many(n int, item string) string { return strings.TrimSuffix(strings.Repeat(item+", ", n), ", ") }
