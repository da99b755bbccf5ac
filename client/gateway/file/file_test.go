package file_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quorlease/quorlease/api/limitsfile/strict"
	"github.com/quorlease/quorlease/client/gateway"
	"github.com/quorlease/quorlease/client/gateway/attempt"
	"github.com/quorlease/quorlease/client/gateway/circuit"
	"github.com/quorlease/quorlease/client/gateway/fallback"
	"github.com/quorlease/quorlease/client/gateway/file"
	"github.com/quorlease/quorlease/client/gateway/provider"
	"github.com/quorlease/quorlease/client/gateway/replay"
	"github.com/quorlease/quorlease/client/gateway/who"
	"github.com/quorlease/quorlease/fsm/retry"
)

// secrets are files and an environment in memory.
func secrets(files map[string]string) file.Secrets {
	return file.Secrets{
		ReadFile: func(name string) ([]byte, error) {
			text, there := files[name]
			if !there {
				return nil, fmt.Errorf("open %s: %w", name, fs.ErrNotExist)
			}
			return []byte(text), nil
		},
		LookupEnv: func(name string) (string, bool) {
			value, there := map[string]string{
				"OPENAI_API_KEY": "sk-of-the-environment", "EMPTY": "", "SPACED": "two words",
			}[name]
			return value, there
		},
	}
}

const someHash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

// whole has every field, none of them at its default.
const whole = `listen: 127.0.0.1:8080
admin: 127.0.0.1:9080
tls: {cert_file: tls.crt, key_file: tls.key}
endpoints: ["127.0.0.1:7101", "n2:7101"]
client: gateway-1
deployments:
  - name: main
    provider: openai
    upstream: https://api.openai.com
    models: [gpt-4o, gpt-4o-mini]
    key_env: OPENAI_API_KEY
    header: {openai-organization: org-1}
    per_minute: {requests: 500, tokens: 200_000}
    source: {url: https://example.com/limits, verified_at: 2026-10-22}
    output_max: 16_384
    attributes: {account: main}
    price: {input: 2_500_000, output: 10_000_000}
    latency: 2s
    fallbacks: [{deployment: own, model: llama}]
  - {name: own, upstream: "http://127.0.0.1:8000/base", key_file: own.key, no_usage: true, price: {output: 0}}
classes:
  - {name: live, max_wait: 5s, closed: shed}
  - {name: batch, max_wait: 1h, closed: defer}
  - {name: now, max_wait: none, mode: immediate}
  - {name: tool, mode: fixed, delay: 3s}
  - {name: night, mode: defer}
clients:
  - {name: notes, tenant: notes-team, classes: [live, batch], key_sha256: [` + someHash + `], retry_marker: warn}
  - {name: edge, tenant: edge, key_file: edge.keys, may: [notes], tenants: [notes-team], any: true}
identify:
  header: x-team
  class_header: x-class
  tenant_header: x-tenant
  missing: warn
  unnamed: shadow
  retry_marker: enforce
  classes: [live]
tries: 5
retry_tokens: {cap: 100, cost: 10, refund: 2, free: 2/min}
body_max: 8MiB
bodies_max: 1GiB
bodies_client_max: 64MiB
coalesce: false
coalesced_max: 16MiB
hash_key_file: hash.key
idempotency: {required: [/v1/batches, "/v1/fine_tuning/*"], keep: 1h, bytes: 128MiB, answer_max: 2MiB}
attempts:
  remembered: 5m
  entries: 4096
  volatile: [user, trace]
  markers: [{header: x-try, field: n=, first: 1, layer: proxy}]
circuit:
  {throttles: none, least: 50, fraction: 25%, window: 1m, open: 10s, hint_max: 2h, probe_max: 5m,
   shared: {tenants: tenant, deployments: provider, probes: circuit-probes}}
pause: {step: 500ms, least: 150ms, most: 900ms}
fallback: {share: 20%, free: 5_000_000}
`

var files = map[string]string{
	"own.key": "a-key\n", "edge.keys": "0123456789abcdef-1\n0123456789abcdef-2\n", "hash.key": "0123456789abcdef\n",
}

func TestWholeFile(t *testing.T) {
	t.Parallel()
	f, err := file.Parse("gateway.yaml", []byte(whole), secrets(files))
	if err != nil {
		t.Fatal(err)
	}
	if f.Listen != "127.0.0.1:8080" || f.Admin != "127.0.0.1:9080" || f.Client != "gateway-1" ||
		f.Certificate != "tls.crt" || f.CertificateKey != "tls.key" || len(f.Endpoints) != 2 {
		t.Errorf("%+v", f)
	}
	main, own := f.Gateway.Deployments[0], f.Gateway.Deployments[1]
	if main.Provider.Name != provider.NameOpenAI || main.Upstream.String() != "https://api.openai.com" ||
		main.Key != "sk-of-the-environment" || main.OutputMax != 16_384 || main.NoUsage {
		t.Errorf("%+v", main)
	}
	for _, row := range []struct{ got, want any }{
		{main.Models, []string{"gpt-4o", "gpt-4o-mini"}},
		{main.Header, http.Header{"Openai-Organization": {"org-1"}}},
		{main.PerMinute, map[string]int64{"requests": 500, "tokens": 200_000}},
		{main.Attributes, map[string]string{"account": "main"}},
		{f.Sources, map[string]file.Source{"main": {URL: "https://example.com/limits", On: "2026-10-22"}}},
		{f.Gateway.Classes, []gateway.Class{
			{Name: "live", MaxWait: 5 * time.Second},
			{Name: "batch", MaxWait: time.Hour, Closed: circuit.Defer},
			{Name: "now", MaxWait: -1, Manner: fallback.Manner{Mode: fallback.Immediate}},
			{Name: "tool", Manner: fallback.Manner{Mode: fallback.Fixed, Delay: 3 * time.Second}},
			{Name: "night", Closed: circuit.Defer, Manner: fallback.Manner{Mode: fallback.Defer}},
		}},
		{main.Fallback, fallback.Model{
			Price: &fallback.Price{Input: 2_500_000, Output: 10_000_000}, Latency: 2 * time.Second,
			To: []fallback.Target{{Deployment: "own", Model: "llama"}},
		}},
		{own.Fallback, fallback.Model{Price: &fallback.Price{}}},
		{f.Gateway.Fallback, fallback.Bound{ShareBP: 2000, Free: 5_000_000}},
		{f.Gateway.RetryTokens, retry.TokenRule{Cap: 100, Cost: 10, Refund: 2, MinRetries: 2, MinInterval: time.Minute}},
		{f.Gateway.Pauses, provider.Schedule{
			Step: 500 * time.Millisecond, Least: 150 * time.Millisecond, Most: 900 * time.Millisecond,
		}},
		{f.Gateway.Markers, append(attempt.Markers(),
			attempt.Marker{Header: "x-try", Field: "n=", First: 1, Layer: attempt.Proxy})},
		{f.Who.Clients, []who.Client{
			{
				Name: "notes", Tenant: "notes-team", Classes: []string{"live", "batch"}, Keys: []string{someHash},
				Unmarked: who.Warn,
			},
			{
				Name: "edge", Tenant: "edge", May: []string{"notes"},
				Tenants: []string{"notes-team"}, Any: true,
				Keys: []string{who.HashKey("0123456789abcdef-1"), who.HashKey("0123456789abcdef-2")},
			},
		}},
		{f.Who.Classes, []string{"live"}},
		{f.Gateway.Replays, replay.Config{
			Required: []string{"/v1/batches", "/v1/fine_tuning/*"}, Keep: time.Hour, Bytes: 128 << 20, AnswerMax: 2 << 20,
		}},
		{
			[]string{f.Who.Name, f.Who.Class, f.Who.Tenant},
			[]string{"x-team", "x-class", "x-tenant"},
		},
		{
			[]who.Mode{f.Who.Unidentified, f.Who.Unnamed, f.Who.Unmarked},
			[]who.Mode{who.Warn, who.Shadow, who.Enforce},
		},
	} {
		if diff := cmp.Diff(row.want, row.got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	if own.Name != "own" || own.Provider.Name != provider.NameCompatible || own.Key != "a-key" || !own.NoUsage ||
		own.Upstream.String() != "http://127.0.0.1:8000/base" {
		t.Errorf("%+v", own)
	}
	g := f.Gateway
	if g.Tries != 5 || g.BodyMax != 8<<20 || g.BodiesMax != 1<<30 || g.BodiesClientMax != 64<<20 ||
		!g.NoSharing || g.Shared.Bytes != 16<<20 ||
		string(g.Hashes.Key) != "0123456789abcdef" || !slices.Equal(g.Hashes.Volatile, []string{"user", "trace"}) ||
		g.Attempts.TTL != 5*time.Minute || g.Attempts.Entries != 4096 || f.Who.Markers == nil {
		t.Errorf("%+v", g)
	}
	c := g.Circuits
	if c.CallThrottles != -1 || c.Least != 50 || c.FractionBP != 2500 || c.Window != time.Minute ||
		c.Open != 10*time.Second || c.HintMax != 2*time.Hour || c.ProbeMax != 5*time.Minute {
		t.Errorf("%+v", c)
	}
	if g.Told.Circuits != "tenant" || g.Told.Deployments != "provider" || g.Probes != "circuit-probes" {
		t.Errorf("%+v, %q", g.Told, g.Probes)
	}
	if len(f.Warnings) > 0 {
		t.Errorf("warnings: %q", f.Warnings)
	}
}

// A file needs one deployment, and leaves everything else to its defaults.
func TestSmallestFile(t *testing.T) {
	t.Parallel()
	f, err := file.Parse("g.yaml", []byte("deployments: [{name: a, upstream: 'https://api.anthropic.com'}]"), secrets(nil))
	if err != nil {
		t.Fatal(err)
	}
	f.Gateway.Deployments[0].Upstream = nil
	table, err := provider.Named(provider.NameAnthropic)
	if err != nil {
		t.Fatal(err)
	}
	want := &file.File{
		Gateway: gateway.Config{Deployments: []gateway.Deployment{{Name: "a", Provider: table}}},
		Sources: map[string]file.Source{},
	}
	if diff := cmp.Diff(fmt.Sprintf("%+v", *want), fmt.Sprintf("%+v", *f)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// with is the smallest file and one more line.
func with(line string) string {
	return "deployments:\n  - {name: a, upstream: 'http://127.0.0.1:1'}\n" + line + "\n"
}

// deployed is a file whose only deployment has more fields.
func deployed(fields string) string {
	return "deployments:\n  - {name: a, upstream: 'http://127.0.0.1:1', " + fields + "}\n"
}

// clients is a file with clients.
func clients(list string) string { return with("clients:\n" + list) }

// mistake is a file with something wrong and a part of what is said about it.
type mistake struct{ name, file, want string }

func (m mistake) check(t *testing.T) {
	t.Parallel()
	_, err := file.Parse("g.yaml", []byte(m.file), secrets(files))
	var wrong strict.Errors
	if !errors.As(err, &wrong) {
		t.Fatalf("%v\n%s", err, m.file)
	}
	if !strings.Contains(err.Error(), m.want) {
		t.Errorf("got  %s\nwant %s", err, m.want)
	}
	for line := range strings.Lines(err.Error()) {
		if !strings.HasPrefix(line, "g.yaml:") {
			t.Errorf("no place: %q", line)
		}
	}
	for _, secret := range []string{"hunter2", "sk-secret", "sk-live", "a-key", "0123456789abcdef"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%q is in %s", secret, err)
		}
	}
}

func TestMistakesHaveTheirPlace(t *testing.T) {
	t.Parallel()
	for _, m := range []mistake{
		{"nothing", "", "1:1: the file is empty: deployments at least are needed"},
		{"no deployments", "listen: 127.0.0.1:80\n", "1:1: deployments: 0 are out of range 1..256"},
		{"unknown field", with("retries: 3"), "3:1: retries: unknown field; known are listen, admin, "},
		{"twice", with("tries: 3\ntries: 4"), "4:1: tries: set twice in one place"},
		{"wrong type", with("tries: many"), `3:8: tries: "many": want a whole number`},
		{"a float", with("tries: 2.5"), "3:8: tries: \"2.5\": floats are not supported"},
		{"too many tries", with("tries: 11"), "3:8: tries: 11 is out of range 1..10"},
		{"no tries", with("tries: 0"), "3:8: tries: 0 is out of range 1..10"},
		{"no port", with("listen: localhost"), `3:9: listen: "localhost" is not host:port`},
		{"high port", with("listen: localhost:70000"), `3:9: listen: "localhost:70000" has no port between 0 and 65535`},
		{"one port for both", with("listen: a:1\nadmin: a:1"), `4:1: admin: "a:1" is where requests come in`},
		{"half a certificate", with("tls: {cert_file: a}"), "3:1: tls.key_file: missing"},
		{"no endpoints", with("endpoints: []"), "3:1: endpoints: none: 1 to 32"},
		{"endpoint twice", with("endpoints: [a:1, a:1]"), `3:18: endpoints[1]: "a:1" is there twice`},
		{"no deployment", "deployments: [a]", `1:15: deployments[0]: "a": want fields: name, provider, `},
		{"no name", "deployments: [{upstream: 'http://a'}]", `deployments[0].name: "" is not 1 to 63 characters`},
		{"no upstream", "deployments: [{name: a}]", "deployments[0].upstream: missing: https://api.openai.com, for"},
		{"no address", "deployments: [{name: a, upstream: api.openai.com}]", `"api.openai.com" is no http or https address`},
		{
			"password in the address", "deployments: [{name: a, upstream: 'https://u:hunter2@a'}]",
			"1:35: deployments[0].upstream: has a user or a password, which belongs into key_file or key_env",
		},
		{"dots", "deployments: [{name: a, upstream: 'http://a/b/../c'}]", "has a path with empty or dotted segments"},
		{"nothing between", "deployments: [{name: a, upstream: 'http://a/b//c'}]", "has a path with empty or dotted"},
		{"query", "deployments: [{name: a, upstream: 'http://a?b=c'}]", `"http://a?b=c" has more than a path`},
		{
			"unknown provider", deployed("provider: acme"),
			`deployments[0].provider: "acme": want one of anthropic, azure, bedrock, compatible, gemini, openai, vertex`,
		},
		{
			"deployment twice", with("  - {name: a, upstream: 'http://a'}"),
			`3:6: deployments[1].name: "a" is used twice, first by deployments[0]`,
		},
		{"model twice", deployed("models: [m, m]"), `deployments[0].models[1]: "m" is there twice`},
		{"empty model", deployed("models: ['']"), `deployments[0].models[0]: "" is not 1 to 512 bytes`},
		{"the key itself", deployed("key: sk-secret"), "deployments[0].key: unknown field; known are name, provider, "},
		{"two keys", deployed("key_file: own.key, key_env: OPENAI_API_KEY"), "key_env: there is key_file, too"},
		{"no such file", deployed("key_file: none"), "key_file: open none: file does not exist"},
		{"several keys", deployed("key_file: edge.keys"), "key_file: has 2 lines: want one key"},
		{"no such variable", deployed("key_env: NONE"), `key_env: "NONE" is not in the environment`},
		{"empty variable", deployed("key_env: EMPTY"), `key_env: "EMPTY": it is empty`},
		{"spaced variable", deployed("key_env: SPACED"), `key_env: "SPACED": it has spaces`},
		{"key in a header", deployed("header: {authorization: Bearer x}"), "header.authorization: is for a key, which"},
		{"header of a connection", deployed("header: {connection: close}"), "header.connection: is the gateway's own"},
		{"header twice", deployed("header: {X-A: b, x-a: c}"), "header.x-a: set twice in one place"},
		{"no header", deployed("header: {'a b': c}"), "header.a b: is no name of a header"},
		{"broken header", deployed(`header: {a: "b\nc"}`), `header.a: "b\nc" is no value of a header`},
		{"unknown dimension", deployed("per_minute: {words: 1}"), "per_minute.words: unknown field; known are requests, "},
		{"no limit", deployed("per_minute: {tokens: 0}"), "per_minute.tokens: 0 is out of range 1..9007199254740992"},
		{"own attribute", deployed("attributes: {tenant: x}"), "attributes.tenant: is the gateway's own, like client, "},
		{"no day", deployed("source: {verified_at: yesterday}"), `verified_at: "yesterday" is not a day like 2026-10-22`},
	} {
		t.Run(m.name, m.check)
	}
}

func TestMistakesOfClientsAndTuning(t *testing.T) {
	t.Parallel()
	const keyed = ", key_sha256: [" + someHash + "]}\n"
	for _, m := range []mistake{
		{"class without name", with("classes: [{max_wait: 1s}]"), `classes[0].name: "" is not 1 to 63 characters`},
		{"class twice", with("classes: [{name: a}, {name: a}]"), `classes[1].name: "a" is used twice, first by classes[0]`},
		{"long wait", with("classes: [{name: a, max_wait: 2h}]"), "classes[0].max_wait: 2h is out of range 0s..1h"},
		{"no wait", with("classes: [{name: a, max_wait: long}]"), `want a duration like 500ms, 10s or 1h30m, or none`},
		{"closed", with("classes: [{name: a, closed: wait}]"), `classes[0].closed: "wait": want one of shed, defer`},
		{"nobody's name", clients("  - {tenant: t" + keyed), "4:5: clients[0].name: missing: 1 to 256 bytes"},
		{
			"a key for a hash", clients("  - {name: a, key_sha256: [sk-live-1234]}"),
			"4:28: clients[0].key_sha256[0]: 12 characters that are no SHA-256 in 64 hex digits",
		},
		{
			"a list for a hash", clients("  - {name: a, key_sha256: [{a: b}]}"),
			"key_sha256[0]: want a SHA-256 in hex digits",
		},
		{
			"a key of two", clients("  - {name: a" + keyed + "  - {name: b" + keyed),
			"clients[1].key_sha256[0]: 9f86d081… is a key of \"a\" already",
		},
		{"a name of two", clients("  - {name: a" + keyed + "  - {name: a}"), "clients[1].name: is another client's, too"},
		{"nobody can be it", clients("  - {name: a}"), "clients[0].key_sha256: none, and no other client may speak for it"},
		{"unknown client", clients("  - {name: a, may: [b]" + keyed), `clients[0].may[0]: "b" is no configured client`},
		{"short key", clients("  - {name: a, key_file: own.key}"), "clients[0].key_file: key 1 has 5 bytes, at least 16"},
		{"mode", with("identify: {missing: refuse}"), `identify.missing: "refuse": want one of off, shadow, warn, enforce`},
		{"missing off", with("identify: {missing: off}"), "3:12: identify.missing: off is not shadow to enforce"},
		{"header of keys", with("identify: {header: api-key}"), "3:12: identify.header: Api-Key is for the keys"},
		{"cost", with("retry_tokens: {cost: 1000}"), "3:16: retry_tokens.cost: cost 1000: must be from 1 to the cap, 500"},
		{"free", with("retry_tokens: {free: often}"), `retry_tokens.free: "often": want tokens per interval`},
		{"megabytes", with("body_max: 8MB"), `3:11: body_max: "8MB": want a number of bytes, like 32MiB`},
		{"small body", with("body_max: 100"), "body_max: 100 is out of range 1KiB..1GiB"},
		{"fewer than one", with("bodies_max: 8MiB"), "3:1: bodies_max: 8MiB is less than body_max, 32MiB"},
		{"a small share", with("bodies_client_max: 8MiB"), "3:1: bodies_client_max: 8MiB is less than body_max, 32MiB"},
		{"a large share", with("bodies_client_max: 1GiB"), "3:1: bodies_client_max: 1GiB is more than bodies_max, 256MiB"},
		{"probe", with("circuit: {probe_max: 2h}"), "circuit.probe_max: 2h is out of range 1s..1h"},
		{"coalesce", with("coalesce: never"), `3:11: coalesce: "never": want true or false`},
		{"kept", with("idempotency: {keep: 1000h}"), "idempotency.keep: 1000h is out of range 1s..720h, or none"},
		{"path", with("idempotency: {required: [v1]}"), `idempotency.required[0]: "v1" does not begin with a slash`},
		{"pattern", with("idempotency: {required: [/a, '/[']}"), `idempotency.required[1]: "/[" is no pattern of a path`},
		{"few bytes", with("idempotency: {bytes: 1MiB}"), "idempotency.bytes: 1MiB is out of range 4MiB..1024GiB"},
		{
			"large answer", with("idempotency: {bytes: 4MiB, answer_max: 2MiB}"),
			"idempotency.answer_max: 2MiB is more than a quarter of bytes, 1MiB",
		},
		{"short hash key", with("hash_key_file: own.key"), "hash_key_file: the key has 5 bytes, at least 16"},
		{"remembered", with("attempts: {remembered: 2h}"), "attempts.remembered: 2h is out of range 1s..1h"},
		{"marker", with("attempts: {markers: [{first: 2}]}"), "attempts.markers[0].first: 2 is out of range 0..1"},
		{"layer", with("attempts: {markers: [{header: a, layer: me}]}"), `"me": want one of application, sdk, transport, `},
		{"never", with("circuit: {throttles: 0}"), "circuit.throttles: 0 is out of range 1..100: want more than nothing, or"},
		{"fraction", with("circuit: {fraction: half}"), `circuit.fraction: "half": want a percentage with at most two`},
		{"limit", with("circuit: {shared: {tenants: a/b}}"), `circuit.shared.tenants: "a/b" may not have '/' there`},
		{
			"soon open", with("circuit: {open: 5s, shared: {probes: a}}"),
			"3:11: circuit.open: 5s is not more than 5s, with probes",
		},
		{"fixed pause", with("pause: {step: 1s}"), "pause.most: missing: a pause of a fixed length brings all back at once"},
		{"short pause", with("pause: {least: 1s, most: 1s}"), "3:20: pause.most: most 1s: must be more than least, 1s"},
		{"endless pause", with("pause: {step: long, most: 1s}"), `3:15: pause.step: "long": want a duration like 500ms`},
		{"hints", with("circuit: {hint_max: 10s}"), "3:11: circuit.hint_max: 10s is less than open, 30s"},
	} {
		t.Run(m.name, m.check)
	}
}
