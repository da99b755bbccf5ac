package behind_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/quorlease/quorlease/bench/upstream"
	"github.com/quorlease/quorlease/client/gateway/stream"
)

// cloud is how a program speaks with one.
type cloud struct {
	name    string
	api     upstream.API
	plain   string
	streams string
	// format is that of its streams, and events how many one of sixteen tokens has, three in each.
	format stream.Format
	events int
	body   func(about string) string
	// refused is what the body of a refusal for a limit has, and capped that of a spend cap, with
	// its status; empty: it has none.
	refused, capped string
	status          int
}

func asContents(about string) string {
	return `{"contents":[{"role":"user","parts":[{"text":"` + about + `"}]}],"generationConfig":{"maxOutputTokens":16}}`
}

func asConverse(about string) string {
	return `{"messages":[{"role":"user","content":[{"text":"` + about + `"}]}],"inferenceConfig":{"maxTokens":16}}`
}

func asMessages(about string) string {
	return `{"anthropic_version":"x","max_tokens":16,"messages":[{"role":"user","content":"` + about + `"}]}`
}

const (
	atVertex = "/v1/projects/p/locations/l/publishers/"
	// written are the events with text of an answer of sixteen tokens.
	written = 6
)

var clouds = []cloud{
	{
		name: "gemini", api: upstream.Gemini, plain: "/v1beta/models/model:generateContent",
		streams: "/v1beta/models/model:streamGenerateContent?alt=sse", format: stream.Events, events: written + 1,
		body: asContents, refused: `"retryDelay"`, capped: `"reason":"SPEND_CAP"`, status: http.StatusTooManyRequests,
	},
	{
		name: "gemini-array", api: upstream.Gemini, plain: "/v1/models/model:generateContent",
		streams: "/v1beta/models/model:streamGenerateContent", format: stream.Elements, events: written + 1,
		body: asContents, refused: `"status":"RESOURCE_EXHAUSTED"`, capped: `"status":"RESOURCE_EXHAUSTED"`,
		status: http.StatusTooManyRequests,
	},
	{
		name: "vertex", api: upstream.Vertex, plain: atVertex + "google/models/model:generateContent",
		streams: atVertex + "google/models/model:streamGenerateContent?alt=sse", format: stream.Events,
		events: written + 1, body: asContents, refused: `"retryDelay"`,
	},
	{
		name: "vertex-claude", api: upstream.Vertex, plain: atVertex + "anthropic/models/model:rawPredict",
		streams: atVertex + "anthropic/models/model:streamRawPredict", format: stream.Events,
		events: written + 6, body: asMessages, refused: `"type":"rate_limit_error"`,
	},
	{
		name: "bedrock", api: upstream.Bedrock, plain: "/model/model/converse", streams: "/model/model/converse-stream",
		format: stream.Messages, events: written + 4, body: asConverse, refused: `ThrottlingException`,
		capped: "ServiceQuotaExceededException", status: http.StatusBadRequest,
	},
	{
		name: "bedrock-claude", api: upstream.Bedrock, plain: "/model/arn%3Aaws%3Abedrock%3A%3A%3Ax%2Fmodel/invoke",
		streams: "/model/model/invoke-with-response-stream", format: stream.Messages, events: written + 6,
		body: asMessages, refused: `ThrottlingException`, capped: "ServiceQuotaExceededException",
		status: http.StatusBadRequest,
	},
}

// meet is a program in front of a gateway in front of the cloud.
func (c *cloud) meet(t *testing.T, deployment, path string, faults ...upstream.Fault) (*place, *program) {
	t.Helper()
	p := stand(t, setting{
		deployment: deployment + c.name, provider: upstream.Config{API: c.api, OutputTokens: 16}, faults: faults,
		authority: ask(t),
	})
	who := newProgram(t, p, c.api, deployment+c.name)
	who.url = p.url + path
	return p, who
}

// TestClouds: Gemini, Vertex AI and Bedrock through a gateway, as programs ask them.
func TestClouds(t *testing.T) {
	for i := range clouds {
		c := &clouds[i]
		t.Run("S2-09_plain_"+c.name, func(t *testing.T) {
			p, who := c.meet(t, "heard-plain-", c.plain)
			got, err := who.call(t.Context(), c.body("a bucket"))
			if err != nil || got.status != http.StatusOK || !json.Valid(got.body) {
				t.Fatalf("%d %s, %v", got.status, got.body, err)
			}
			c.counted(t, p)
		})
		t.Run("S2-09_stream_"+c.name, func(t *testing.T) {
			p, who := c.meet(t, "heard-stream-", c.streams)
			got, err := who.call(t.Context(), c.body("a bucket"))
			if err != nil || got.status != http.StatusOK {
				t.Fatalf("%d %s, %v", got.status, got.body, err)
			}
			if events := c.read(t, got.body); events != c.events {
				t.Errorf("%d events, want %d:\n%q", events, c.events, got.body)
			}
			c.counted(t, p)
		})
		t.Run("S3-18_an_overload_after_a_200_"+c.name, func(t *testing.T) {
			p, who := c.meet(t, "heard-first-", c.streams, upstream.Fault{Kind: upstream.Spoil, Calls: 1})
			got, err := who.call(t.Context(), c.body("a bucket"))
			if err != nil || got.status != http.StatusOK || c.read(t, got.body) != c.events || p.reached() != 2 {
				t.Errorf("%d %q after %d tries, %v", got.status, got.body, p.reached(), err)
			}
		})
		t.Run("S1-02_storm_"+c.name, func(t *testing.T) { c.storm(t) })
		if c.capped != "" {
			t.Run("S3-27_spend_cap_"+c.name, func(t *testing.T) {
				c.stopped(t, "heard-spent-", upstream.SpendCap, c.status, c.capped)
			})
		}
	}
	t.Run("S3-27_a_day_of_gemini", func(t *testing.T) {
		clouds[0].stopped(t, "heard-day-", upstream.Daily, http.StatusTooManyRequests, clouds[0].capped)
	})
}

// counted wants the gateway to have heard what was used, which is what was billed.
func (c *cloud) counted(t *testing.T, p *place) {
	t.Helper()
	if !until(t.Context(), func() bool { e := p.Stats().Estimates; return e.Requests() == 1 }) {
		t.Errorf("the gateway does not know what was used: %+v", p.Stats())
	}
	calls := p.upstream.Ledger().Calls
	if len(calls) != 1 || calls[0].Model != "model" && c.name != "bedrock-claude" || calls[0].Billed.Output != 16 {
		t.Errorf("the provider has seen %+v", calls)
	}
}

// read is how many events a stream has. None of them may be an error.
func (c *cloud) read(t *testing.T, text []byte) (events int) {
	t.Helper()
	r := stream.NewReader(bytes.NewReader(text), stream.Options{Format: c.format})
	for {
		f, err := r.Next()
		if errors.Is(err, io.EOF) {
			return events
		}
		if err != nil || f.Fault || bytes.Contains(f.Data, []byte(`"error"`)) {
			t.Fatalf("%+v, %v", f, err)
		}
		if f.Whole && f.Data != nil {
			events++
		}
	}
}

// storm is a program that goes on whatever it is told, at a provider that always refuses.
func (c *cloud) storm(t *testing.T) {
	t.Helper()
	const calls = 300
	p, who := c.meet(t, "heard-storm-", c.plain, always()...)
	l := looping{workers: 8, calls: calls, body: func(worker, _ int) string { return c.body(fmt.Sprint("work ", worker)) }}
	told := l.at(t, who)
	if n := p.reached(); n < 1 || n > reachesMax/4 || len(told) != calls {
		t.Errorf("%d of %d calls reached the provider", n, len(told))
	}
	found := false
	for i := range told {
		if got := &told[i]; got.status != http.StatusTooManyRequests && got.status != http.StatusServiceUnavailable {
			t.Fatalf("%d %s", got.status, got.body)
		}
		found = found || strings.Contains(string(told[i].body), c.refused)
	}
	if !found {
		t.Errorf("no refusal has %s: %s", c.refused, told[0].body)
	}
}

// stopped wants a cause that ends by no waiting to reach the provider once.
func (c *cloud) stopped(t *testing.T, deployment string, cause upstream.Cause, status int, said string) {
	t.Helper()
	p, who := c.meet(t, deployment, c.plain, refuse(cause, 0, 0))
	for range 3 {
		got, err := who.call(t.Context(), c.body("a bucket"))
		if err != nil || got.status != status || !strings.Contains(string(got.body), said) ||
			strings.Contains(string(got.body), "retryDelay") || got.header.Get("Retry-After") != "" {
			t.Errorf("%d %v %s, %v", got.status, got.header, got.body, err)
		}
	}
	if n := p.reached(); n != 1 {
		t.Errorf("%d calls reached the provider, want 1", n)
	}
}
