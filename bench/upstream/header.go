package upstream

import (
	"net/http"
	"strconv"
	"time"

	"github.com/quorlease/quorlease/bench/provider"
)

// limited writes what is left, as the provider's headers say it.
func (s *Server) limited(h http.Header, what shape, now time.Duration, state provider.State) {
	switch s.config.API {
	case OpenAI:
		openAILimits(h, state)
	case Azure:
		azureLimits(h, what, state)
	case Anthropic:
		s.anthropicLimits(h, now, state)
	case Gemini, Vertex, Bedrock:
	}
}

func integer(h http.Header, name string, n int64) { h.Set(name, strconv.FormatInt(n, 10)) }

// openAILimits has the time until a bucket is full as Go writes durations.
func openAILimits(h http.Header, state provider.State) {
	for _, d := range []struct {
		name        string
		limit, left int64
		full        time.Duration
	}{
		{"requests", state.Limits.Requests, state.Remaining.Requests, state.FullRequests},
		{"tokens", state.Limits.Input, state.Remaining.Input, state.FullInput},
	} {
		if d.limit == 0 {
			continue
		}
		integer(h, "x-ratelimit-limit-"+d.name, d.limit)
		integer(h, "x-ratelimit-remaining-"+d.name, d.left)
		h.Set("x-ratelimit-reset-"+d.name, ((d.full + time.Millisecond - 1) / time.Millisecond * time.Millisecond).String())
	}
}

// azureLimits has no time, and for responses no number either.
func azureLimits(h http.Header, what shape, state provider.State) {
	if what == responses {
		integer(h, "x-ratelimit-limit-tokens", -1)
		integer(h, "x-ratelimit-remaining-tokens", -1)
		integer(h, "x-ratelimit-reset-tokens", 0)
		return
	}
	if state.Limits.Requests > 0 {
		integer(h, "x-ratelimit-limit-requests", state.Limits.Requests)
		integer(h, "x-ratelimit-remaining-requests", state.Remaining.Requests)
	}
	if state.Limits.Input > 0 {
		integer(h, "x-ratelimit-limit-tokens", state.Limits.Input)
		integer(h, "x-ratelimit-remaining-tokens", state.Remaining.Input)
	}
}

// anthropicLimits has moments, and what is left of tokens in thousands.
func (s *Server) anthropicLimits(h http.Header, now time.Duration, state provider.State) {
	set := func(name string, limit, left int64, full time.Duration) {
		if limit == 0 {
			return
		}
		integer(h, "anthropic-ratelimit-"+name+"-limit", limit)
		integer(h, "anthropic-ratelimit-"+name+"-remaining", left)
		h.Set("anthropic-ratelimit-"+name+"-reset", s.config.Start.Add(now+full).UTC().Format(time.RFC3339))
	}
	limits, left := state.Limits, state.Remaining
	in, out := thousands(left.Input), thousands(left.Output)
	set("requests", limits.Requests, left.Requests, state.FullRequests)
	set("input-tokens", limits.Input, in, state.FullInput)
	set("output-tokens", limits.Output, out, state.FullOutput)
	if limits.Input > 0 && limits.Output > 0 {
		set("tokens", limits.Input+limits.Output, in+out, max(state.FullInput, state.FullOutput))
	}
}

func thousands(n int64) int64 { return (n + 500) / 1000 * 1000 }

// named writes the headers that say which request it was.
func (s *Server) named(h http.Header, id string, took time.Duration) {
	switch s.config.API {
	case OpenAI:
		h.Set("x-request-id", id)
		h.Set("openai-organization", "simulated")
		h.Set("openai-version", "2020-10-01")
		integer(h, "openai-processing-ms", took.Milliseconds())
	case Azure:
		h.Set("x-request-id", id)
		h.Set("apim-request-id", id)
		h.Set("x-ms-region", "Simulated")
	case Anthropic:
		h.Set("request-id", id)
		h.Set("anthropic-organization-id", "simulated")
	case Bedrock:
		h.Set("x-amzn-requestid", id)
	case Gemini, Vertex:
	}
}
