package upstream_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorlease/quorlease/bench/provider"
	"github.com/quorlease/quorlease/bench/upstream"
	gate "github.com/quorlease/quorlease/client/gateway/provider"
)

// Each has ten tokens by estimate and eight in truth, as body has.
var (
	text     = strings.Repeat("aaaa ", 8)
	contents = `{"contents":[{"parts":[{"text":"` + text + `"}]}],"generationConfig":{"maxOutputTokens":20}}`
	converse = `{"messages":[{"role":"user","content":[{"text":"` + text + `"}]}],"inferenceConfig":{"maxTokens":20}}`
)

const (
	atGemini  = "/v1beta/models/m:generateContent"
	atVertex  = "/v1/projects/p/locations/l/publishers/google/models/m:generateContent"
	atBedrock = "/model/m/converse"
)

// TestCloudRefusals: what is played is what the gateway's tables are about.
func TestCloudRefusals(t *testing.T) {
	for _, row := range []struct {
		api        upstream.API
		path, body string
		cause      upstream.Cause
		wait       time.Duration
		status     int
		want       gate.Class
		waits      time.Duration
	}{
		{upstream.Gemini, atGemini, contents, upstream.Requests, hint, 429, gate.Transient, hint},
		{upstream.Gemini, atGemini, contents, upstream.InputTokens, hint, 429, gate.Transient, hint},
		{upstream.Gemini, atGemini, contents, upstream.Daily, hint, 429, gate.HardQuota, hint},
		{upstream.Gemini, atGemini, contents, upstream.SpendCap, 0, 429, gate.HardQuota, 0},
		{upstream.Gemini, atGemini, contents, upstream.Billing, 0, 402, gate.HardQuota, 0},
		{upstream.Gemini, atGemini, contents, upstream.SlowDown, 0, 429, gate.Transient, 0},
		{upstream.Gemini, atGemini, contents, upstream.Overload, 0, 503, gate.Overload, 0},
		{upstream.Vertex, atVertex, contents, upstream.InputTokens, 0, 429, gate.Transient, 0},
		{upstream.Vertex, atVertex, contents, upstream.Overload, 0, 429, gate.Overload, time.Second},
		{upstream.Vertex, atVertex, contents, upstream.Unavailable, 0, 503, gate.Overload, 0},
		{upstream.Bedrock, atBedrock, converse, upstream.Requests, 0, 429, gate.Transient, 0},
		{upstream.Bedrock, atBedrock, converse, upstream.InputTokens, 0, 429, gate.Transient, 0},
		{upstream.Bedrock, atBedrock, converse, upstream.Daily, 0, 429, gate.LongWindow, time.Hour},
		{upstream.Bedrock, atBedrock, converse, upstream.SlowDown, 0, 429, gate.Overload, 0},
		{upstream.Bedrock, atBedrock, converse, upstream.Overload, 0, 503, gate.Overload, 0},
		{upstream.Bedrock, atBedrock, converse, upstream.SpendCap, 0, 400, gate.HardQuota, 0},
	} {
		t.Run("S3-27_"+string(row.api)+"_"+string(row.cause), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := open(t, upstream.Config{API: row.api})
				if err := s.SetFaults(upstream.Fault{Kind: upstream.Refuse, Cause: row.cause, Wait: row.wait}); err != nil {
					t.Fatal(err)
				}
				got := ask(t, s, row.path, row.body)
				table, err := gate.Named(string(row.api))
				if err != nil {
					t.Fatal(err)
				}
				v := table.Classify(gate.Answer{
					Status: got.Code, Header: got.Header(), Body: got.Body.Bytes(), Wall: time.Now(),
				})
				if got.Code != row.status || v.Class != row.want || v.Wait.For != row.waits ||
					got.Header().Get("Retry-After") != "" {
					t.Errorf("%d %s %s is %s and waits %s, want %s and %s",
						got.Code, got.Header(), got.Body, v.Class, v.Wait.For, row.want, row.waits)
				}
			})
		})
	}
}

// TestCloudAccounts: what each of them counts, and when it gives it back.
func TestCloudAccounts(t *testing.T) {
	served := func(t *testing.T, s *upstream.Server, path, body string, want int) {
		t.Helper()
		if got := ask(t, s, path, body); got.Code != want {
			t.Errorf("%d %s, want %d", got.Code, got.Body, want)
		}
	}
	t.Run("gemini_has_a_day", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, upstream.Config{API: upstream.Gemini, Rules: provider.Rules{
				Day: &provider.Day{Requests: 2, Ends: 7 * time.Hour},
			}})
			for _, want := range []int{200, 200, 429} {
				served(t, s, atGemini, contents, want)
			}
			<-time.After(7 * time.Hour)
			for _, want := range []int{200, 200, 429} {
				served(t, s, atGemini, contents, want)
			}
			<-time.After(23 * time.Hour)
			served(t, s, atGemini, contents, 429)
			<-time.After(time.Hour)
			served(t, s, atGemini, contents, 200)
		})
	})
	t.Run("gemini_counts_input", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			// Sixteen in truth are two requests, and the estimate of a third does not fit.
			s := open(t, upstream.Config{
				API: upstream.Gemini, Rules: upstream.Usual(upstream.Gemini, provider.Limits{Input: 20, Output: 1}),
			})
			for _, want := range []int{200, 200, 429} {
				served(t, s, atGemini, contents, want)
			}
		})
	})
	t.Run("bedrock_reserves_what_may_be_written", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			// Thirty are reserved, and 8 and 5 times 4 counted in the end.
			s := open(t, upstream.Config{
				API: upstream.Bedrock, OutputTokens: 4, Burndown: 5,
				Rules: upstream.Usual(upstream.Bedrock, provider.Limits{Input: 60}),
			})
			for _, want := range []int{200, 200, 429} {
				served(t, s, atBedrock, converse, want)
			}
			if used := s.Ledger().Calls[0]; used.Estimated.Input != 30 || used.Billed.Output != 4 {
				t.Errorf("%+v", used)
			}
		})
	})
	t.Run("what_none_of_them_knows", func(t *testing.T) {
		s := open(t, upstream.Config{API: upstream.Bedrock})
		for path, want := range map[string]int{
			"/model/m/dance": http.StatusNotFound, "/v1/chat/completions": http.StatusNotFound,
			atBedrock: http.StatusBadRequest,
		} {
			served(t, s, path, `{}`, want)
		}
	})
	for name, c := range map[string]upstream.Config{
		"day: 0 until": {API: upstream.Gemini, Rules: provider.Rules{Day: &provider.Day{}}},
		"burndown: 5":  {API: upstream.Gemini, Burndown: 5},
		`vertex was never seen to refuse for "spend_cap"`: {
			API: upstream.Vertex, Rules: provider.Rules{SpendCap: &provider.Span{}},
		},
	} {
		c.Clock = upstream.Speed(1)
		if _, err := upstream.New(c); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want %s", err, name)
		}
	}
}
