package httpapi_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/quorlease/quorlease/cluster"
	"github.com/quorlease/quorlease/cluster/events"
)

const (
	yamlLimits = `limits:
  - name: deployment
    rate: {requests: 600/min, tokens: 1_000/s}
    target: 50%
    burst: 10s
    classes: {live: {share: 60%, burst: 50%}, batch: {share: 0%}}
  - name: tenant
    per: [key]
    rate: {requests: 10/min}
    lease: 1500ms
    on_quorum_loss: share
    fallback: {share: 12.5%}
  - {name: free, unlimited: true, on_quorum_loss: closed}
  - {name: closed, rate: {requests: 0/min}}
retry_budgets:
  - {name: default, match: {client: "*"}, max_fraction: 20%}
`
	lease   = `"lease_id":"00112233445566778899aabbccddeeff"`
	session = `"session_id":"0123456789abcdeffedcba9876543210"`
	lease2  = `"lease_id":"ffeeddccbbaa99887766554433221100"`
)

// Every shape that scripts rely on, one file a call. A change here is a change of
// the contract.
func TestEveryShapeIsAsReviewed(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, step := range []struct {
		name    string
		advance time.Duration
		request request
	}{
		{name: "apply-yaml", request: request{
			method: "POST", path: "/v1/limits:apply?dry_run=false",
			kind: "application/yaml", body: yamlLimits,
		}},
		{name: "apply-json", request: request{
			method: "POST", path: "/v1/limits:apply", kind: "application/json",
			body: `{"limits":[{"name":"hourly","dimensions":[{"name":"requests","rate":{"amount":"5","interval":"3600s"}}]}]}`,
		}},
		{name: "acquire-granted", request: request{
			method: "POST", path: "/v1/admission:acquire", kind: "application/json",
			body: `{` + lease + `,"client":"c","class":"live","track":true,"charges":[` +
				`{"limit":"deployment","dimension":"requests","amount":"20"},` +
				`{"limit":"tenant","key":"red","dimension":"requests","amount":4}]}`,
		}},
		{
			name: "acquire-repeated", advance: 500 * time.Millisecond,
			request: request{
				method: "POST", path: "/v1/admission:acquire", kind: "application/json",
				body: `{` + lease + `,"client":"c","class":"live","track":true,"charges":[` +
					`{"limit":"tenant","key":"red","dimension":"requests","amount":"4"},` +
					`{"limit":"deployment","dimension":"requests","amount":"20"}]}`,
			},
		},
		{name: "acquire-denied", request: request{
			method: "POST", path: "/v1/admission:acquire", kind: "application/json",
			body: `{` + lease2 + `,"charges":[{"limit":"tenant","key":"red","dimension":"requests","amount":"7"},` +
				`{"limit":"closed","dimension":"requests","amount":"1"}]}`,
		}},
		{name: "acquire-unlimited", request: request{
			method: "POST", path: "/v1/admission:acquire", kind: "application/json",
			body: `{` + lease2 + `,"charges":[{"limit":"free","dimension":"anything","amount":"9007199254740992"}]}`,
		}},
		{name: "peek", request: request{
			method: "POST", path: "/v1/admission:peek", kind: "application/json",
			body: `{"class":"batch","charges":[{"limit":"deployment","dimension":"tokens","amount":"100"}]}`,
		}},
		{name: "renew", request: request{
			method: "POST", path: "/v1/admission:renew", kind: "application/json",
			body: `{` + lease + `,"ttl":"90.250s","sequence":"1","used":[{"dimension":"requests","used":"1"}]}`,
		}},
		{name: "usage", request: request{method: "GET", path: "/v1/usage?by=client&hours=2&top=5"}},
		{name: "usage-key", request: request{
			method: "GET", path: "/v1/usage?by=key&limit=tenant&from=2026-10-01&to=2026-10-02T13:00:00Z",
		}},
		{name: "fail-usage-to", request: request{method: "GET", path: "/v1/usage?by=key&from=2026-10-01&to=tomorrow"}},
		{name: "fail-usage", request: request{method: "GET", path: "/v1/usage?by=colour"}},
		{name: "inspect", request: request{method: "GET", path: "/v1/limits:inspect?limit=deployment"}},
		{name: "keys", request: request{method: "GET", path: "/v1/limits:keys?limit=tenant&top=5&prefix=r&stale=true"}},
		{name: "inspect-key", request: request{method: "GET", path: "/v1/limits:inspect?limit=tenant&key=red&stale=true"}},
		{name: "settle", request: request{
			method: "POST", path: "/v1/admission:settle", kind: "application/json",
			body: `{` + lease + `,"used":[{"limit":"tenant","key":"red","dimension":"requests","used":"2"}]}`,
		}},
		{name: "acquire-to-release", request: request{
			method: "POST", path: "/v1/admission:acquire",
			kind: "application/json", body: `{` + lease2 + `,"track":true,"charges":[` +
				`{"limit":"tenant","key":"blue","dimension":"requests","amount":"1"}]}`,
		}},
		{name: "release", request: request{
			method: "POST", path: "/v1/admission:release", kind: "application/json",
			body: `{` + lease2 + `}`,
		}},
		{name: "adjust", request: request{
			method: "POST", path: "/v1/limits:adjust", kind: "application/json",
			body: `{"limit":"tenant","key":"red","dimension":"requests","add":"-1","reason":"a test"}`,
		}},
		{name: "limits", request: request{method: "GET", path: "/v1/limits"}},
		{name: "limit", request: request{method: "GET", path: "/v1/limits/tenant"}},
		{name: "delete", request: request{method: "DELETE", path: "/v1/limits/hourly?expected_revision=2"}},
		{name: "history", request: request{method: "GET", path: "/v1/limits:history?limit=2"}},
		{name: "clients", request: request{method: "GET", path: "/v1/clients?top=5"}},
		{name: "cluster", request: request{method: "GET", path: "/v1/cluster"}},
		{name: "cluster-add", request: request{
			method: "POST", path: "/v1/cluster:add", kind: "application/json",
			body: `{"id":"n3","peer":"127.0.0.1:7203"}`,
		}},
		{name: "cluster-promote", request: request{
			method: "POST", path: "/v1/cluster:promote", kind: "application/json", body: `{"id":"n9"}`,
		}},
		{name: "cluster-transfer", request: request{
			method: "POST", path: "/v1/cluster:transfer-leadership", kind: "application/json", body: `{}`,
		}},
		{name: "cluster-state", request: request{method: "GET", path: "/v1/cluster/state"}},
		{name: "healthz", request: request{method: "GET", path: "/healthz"}},
		{name: "readyz", request: request{method: "GET", path: "/readyz"}},
	} {
		s.node.Advance(step.advance)
		golden(t, step.name, s.transcript(step.request))
	}
}

// The shapes of work that is described, of slots and of quotas.
func TestKindsAreAsReviewed(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	acquire := func(body string) request {
		return request{method: "POST", path: "/v1/admission:acquire", kind: "application/json", body: body}
	}
	for _, step := range []struct {
		name    string
		request request
	}{
		{"kinds-apply", request{method: "POST", path: "/v1/limits:apply", kind: "application/yaml", body: `limits:
  - name: tenant
    match: {tenant: "*"}
    per: [tenant]
    rate: {requests: 10/min, tokens: 100/min}
    target: 50%
    adaptive: {}
  - {name: inflight, match: {tenant: "*"}, per: [tenant], concurrency: 1, lease: 2m, mode: shadow}
  - {name: day, match: {team: "x*"}, quota: {per: day, timezone: UTC, amounts: {tokens: 5}, warn: [80%]}}
`}},
		{"kinds-described", acquire(`{` + lease + `,"track":true,"attributes":{"tenant":"red","team":"x1"},` +
			`"amounts":{"tokens":"3"},"max_wait":"1.5s"}`)},
		{"kinds-denied", acquire(`{` + lease2 + `,"attributes":{"tenant":"red","team":"x1"},"amounts":{"tokens":"6"}}`)},
		{"kinds-nothing-fits", acquire(`{"attributes":{"region":"eu"}}`)},
		{"kinds-peek", request{
			method: "POST", path: "/v1/admission:peek", kind: "application/json", body: `{"attributes":{"tenant":"blue"}}`,
		}},
		{"kinds-inspect", request{method: "GET", path: "/v1/limits:inspect?limit=inflight&key=red"}},
	} {
		golden(t, step.name, s.transcript(step.request))
	}
}

// The shapes of what clients do while nobody answers.
func TestReportsAreAsReviewed(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	if code, _, body := s.do(request{
		method: "POST", path: "/v1/limits:apply", kind: "application/yaml", body: yamlLimits,
	}); code != http.StatusOK {
		t.Fatal(code, body)
	}
	for _, step := range []struct {
		name    string
		advance time.Duration
		request request
	}{
		{name: "report", request: request{
			method: "POST", path: "/v1/admission:report", kind: "application/json",
			body: `{"client":"c",` + session + `,"admitted":[` +
				`{"limit":"tenant","key":"red","dimension":"requests","tokens":"12"},` +
				`{"limit":"deployment","dimension":"tokens","class":"batch","tokens":12000},` +
				`{"limit":"forgotten","dimension":"requests","tokens":"3"}]}`,
		}},
		{
			name: "report-repeated", advance: 500 * time.Millisecond,
			request: request{
				method: "POST", path: "/v1/admission:report", kind: "application/json",
				body: `{"client":"c",` + session + `,"admitted":[` +
					`{"limit":"tenant","key":"red","dimension":"requests","tokens":"12"}]}`,
			},
		},
		{name: "report-feedback", request: request{
			method: "POST", path: "/v1/admission:report", kind: "application/json",
			body: `{"client":"gateway","feedback":[` +
				`{"kind":"THROTTLED","limit":"deployment","wait":"22s","remaining":{"tokens":"0"},` +
				`"reason":"rate_limit_exceeded"},{"kind":"SPEND_CAP","limit":"forgotten"}]}`,
		}},
		{name: "inspect-paused", request: request{method: "GET", path: "/v1/limits:inspect?limit=deployment"}},
		{name: "inspect-reported", request: request{method: "GET", path: "/v1/limits:inspect?limit=tenant&key=red"}},
		{name: "acquire-known", request: request{
			method: "POST", path: "/v1/admission:acquire", kind: "application/json",
			body: `{"lease_id":"0123456789abcdef0123456789abcdef","known_revision":"1","charges":[` +
				`{"limit":"free","dimension":"anything","amount":"1"}]}`,
		}},
	} {
		s.node.Advance(step.advance)
		golden(t, step.name, s.transcript(step.request))
	}
}

// The shapes of what goes wrong.
func TestEveryFailureIsAsReviewed(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	charges := `"charges":[{"limit":"a","dimension":"requests","amount":"1"}]`
	for _, step := range []struct {
		name    string
		fail    error
		request request
	}{
		{name: "fail-unknown-limit", request: request{
			method: "POST", path: "/v1/admission:acquire",
			kind: "application/json", body: `{` + charges + `}`,
		}},
		{name: "fail-bad-fields", request: request{
			method: "POST", path: "/v1/admission:acquire",
			kind: "application/json", body: `{"track":true,"charges":[{"limit":"a","dimension":"requests","amount":"0"}]}`,
		}},
		{name: "fail-unknown-field", request: request{
			method: "POST", path: "/v1/admission:acquire",
			kind: "application/json", body: `{"leaseid":"x"}`,
		}},
		{name: "fail-yaml", request: request{
			method: "POST", path: "/v1/limits:apply",
			kind: "application/yaml", body: "limits:\n  - name: A\n    rate: {requests: 10/foo}\n",
		}},
		{name: "fail-report", request: request{
			method: "POST", path: "/v1/admission:report",
			kind: "application/json", body: `{"session_id":"x","admitted":[{"limit":"a","dimension":"requests"}]}`,
		}},
		{name: "fail-unknown-lease", request: request{
			method: "POST", path: "/v1/admission:settle",
			kind: "application/json", body: `{` + lease + `}`,
		}},
		{name: "fail-stale-revision", request: request{
			method: "POST", path: "/v1/limits:apply",
			kind: "application/json", body: `{"expected_revision":"7"}`,
		}},
		{name: "fail-no-quorum", fail: cluster.ErrNoQuorum, request: request{method: "GET", path: "/v1/limits"}},
		{name: "fail-outcome-unknown", fail: cluster.ErrOutcomeUnknown, request: request{
			method: "POST",
			path:   "/v1/admission:acquire", kind: "application/json", body: `{` + charges + `}`,
		}},
		{name: "fail-unknown-path", request: request{method: "GET", path: "/v1/nothing"}},
		{name: "fail-method", request: request{method: "PUT", path: "/v1/limits/a"}},
		{name: "fail-content-type", request: request{
			method: "POST", path: "/v1/admission:acquire", kind: "text/plain",
			body: `{}`,
		}},
		{name: "fail-parameter", request: request{method: "GET", path: "/v1/clients?top=many"}},
		{name: "fail-compacted", request: request{method: "GET", path: "/v1/events?from_index=3"}},
	} {
		s.node.Fail(step.fail)
		if step.name == "fail-compacted" {
			s.node.Ring.Publish(events.Event{Index: 9, Kind: events.LimitChanged})
			s.node.Ring.Restored(9)
		}
		golden(t, step.name, s.transcript(step.request))
	}
	s.node.SetStatus(cluster.Status{Quorum: cluster.NoQuorum})
	golden(t, "fail-readyz", s.transcript(request{method: "GET", path: "/readyz"}))
}
