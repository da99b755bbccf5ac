package upstream_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quorlease/quorlease/bench/provider"
	"github.com/quorlease/quorlease/bench/upstream"
)

func TestHeaders(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name       string
		api        upstream.API
		limits     provider.Limits
		path, body string
		want       map[string]string
	}{
		{
			"openai", upstream.OpenAI,
			provider.Limits{Requests: 500, Input: 200_000},
			paths[upstream.OpenAI], body(""),
			map[string]string{
				"x-ratelimit-limit-requests": "500", "x-ratelimit-remaining-requests": "499", "x-ratelimit-reset-requests": "120ms",
				"x-ratelimit-limit-tokens": "200000", "x-ratelimit-remaining-tokens": "199980", "x-ratelimit-reset-tokens": "6ms",
				"openai-organization": "simulated", "request-id": "",
			},
		},
		{
			"azure_chat", upstream.Azure,
			provider.Limits{Requests: 120, Input: 100_000},
			paths[upstream.Azure], body(""),
			map[string]string{
				"x-ratelimit-limit-requests": "20", "x-ratelimit-remaining-requests": "19", "x-ratelimit-reset-requests": "",
				"x-ratelimit-limit-tokens": "100000", "x-ratelimit-remaining-tokens": "99970", "x-ratelimit-reset-tokens": "",
				"x-ms-region": "Simulated",
			},
		},
		{
			"azure_responses", upstream.Azure,
			provider.Limits{Requests: 120, Input: 100_000},
			"/openai/v1/responses",
			`{"model":"m","input":"a"}`,
			map[string]string{
				"x-ratelimit-limit-tokens": "-1", "x-ratelimit-remaining-tokens": "-1", "x-ratelimit-reset-tokens": "0",
				"x-ratelimit-limit-requests": "",
			},
		},
		{
			"anthropic", upstream.Anthropic,
			provider.Limits{Requests: 1000, Input: 80_000, Output: 16_000},
			paths[upstream.Anthropic], body(""),
			map[string]string{
				"anthropic-ratelimit-requests-limit": "1000", "anthropic-ratelimit-requests-remaining": "999",
				"anthropic-ratelimit-requests-reset":     "2026-01-01T00:00:00Z",
				"anthropic-ratelimit-input-tokens-limit": "80000", "anthropic-ratelimit-input-tokens-remaining": "80000",
				"anthropic-ratelimit-output-tokens-limit": "16000", "anthropic-ratelimit-output-tokens-remaining": "16000",
				"anthropic-ratelimit-tokens-limit": "96000", "anthropic-ratelimit-tokens-remaining": "96000",
				"anthropic-organization-id": "simulated", "x-ratelimit-limit-requests": "",
			},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := open(t, upstream.Config{API: row.api, Rules: upstream.Usual(row.api, row.limits)})
				answer := ask(t, s, row.path, row.body)
				if answer.Code != http.StatusOK {
					t.Fatalf("%d %s", answer.Code, answer.Body)
				}
				if diff := cmp.Diff(row.want, headers(answer.Header(), row.want)); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			})
		})
	}
}

// Remaining tokens are rounded to thousands, and the moment of a full bucket is
// that of the account, which is not yet there.
func TestAnthropicResets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, upstream.Config{
			API: upstream.Anthropic, OutputTokens: 1400, Start: time.Date(2026, 5, 6, 7, 8, 0, 0, time.UTC),
			Rules: provider.Rules{Limits: provider.Limits{Output: 2000}},
		})
		long := `{"model":"m","max_tokens":5000,"messages":[{"role":"user","content":"a"}]}`
		ask(t, s, "/v1/messages", long)
		want := map[string]string{
			"anthropic-ratelimit-output-tokens-remaining": "1000",
			"anthropic-ratelimit-output-tokens-reset":     "2026-05-06T07:08:42Z",
		}
		// 600 are left, which are a thousand.
		if diff := cmp.Diff(want, headers(ask(t, s, "/v1/messages", long).Header(), want)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

// What is read from the cache is not counted, and what is written to it is.
func TestCacheReadsAreFree(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, upstream.Config{API: upstream.Anthropic, Rules: provider.Rules{Limits: provider.Limits{Input: 60}}})
		request := `{"model":"m","max_tokens":1,"system":[{"type":"text","text":"aaaa aaaa aaaa aaaa aaaa aaaa",` +
			`"cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":"bbbb bbbb"}]}`
		var counted []int64
		for _, wait := range []time.Duration{0, 0, 4 * time.Minute, 6 * time.Minute} {
			<-time.After(wait)
			var got struct {
				Usage struct {
					Input   int64 `json:"input_tokens"`
					Created int64 `json:"cache_creation_input_tokens"`
					Read    int64 `json:"cache_read_input_tokens"`
				}
			}
			answer := ask(t, s, "/v1/messages", request)
			if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil || answer.Code != http.StatusOK {
				t.Fatalf("%d %s: %v", answer.Code, answer.Body, err)
			}
			counted = append(counted, got.Usage.Input, got.Usage.Created, got.Usage.Read)
		}
		if diff := cmp.Diff([]int64{2, 6, 0, 2, 0, 6, 2, 0, 6, 2, 6, 0}, counted); diff != "" {
			t.Errorf("input, created and read of four calls (-want +got):\n%s", diff)
		}
		// All of the prompt is billed, and the estimate of the second was without the cache.
		calls := s.Ledger().Calls
		if calls[1].Billed.Input != 8 || calls[1].CacheRead != 6 || calls[1].Estimated.Input >= calls[0].Estimated.Input {
			t.Errorf("ledger %+v", calls[:2])
		}
	})
}

// The estimate of an answer is given back once it is known, where it was taken.
func TestEstimatedOutputComesBack(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name     string
		estimate bool
		second   int
	}{{"real_time", false, http.StatusOK}, {"estimated", true, http.StatusTooManyRequests}} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := open(t, upstream.Config{
					API: upstream.Anthropic, OutputTokens: 10, TokensPerSecond: 1, EstimateOutput: row.estimate,
					Rules: provider.Rules{Limits: provider.Limits{Output: 60}},
				})
				request := `{"model":"m","max_tokens":50,"messages":[{"role":"user","content":"a"}]}`
				first := make(chan struct{})
				go func() {
					defer close(first)
					ask(t, s, "/v1/messages", request)
				}()
				synctest.Wait()
				if got := ask(t, s, "/v1/messages", request).Code; got != row.second {
					t.Errorf("beside the first: %d, want %d", got, row.second)
				}
				<-first
				<-time.After(time.Minute)
				if got := ask(t, s, "/v1/messages", request).Code; got != http.StatusOK {
					t.Errorf("when all has been given back: %d", got)
				}
			})
		})
	}
}
