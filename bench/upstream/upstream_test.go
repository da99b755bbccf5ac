package upstream_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/quorlease/quorlease/bench/provider"
	"github.com/quorlease/quorlease/bench/upstream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The paths that answer with text.
var paths = map[upstream.API]string{
	upstream.OpenAI:    "/v1/chat/completions",
	upstream.Azure:     "/openai/deployments/gpt/chat/completions",
	upstream.Anthropic: "/v1/messages",
}

// open is a provider whose clock starts now, in a bubble or not.
func open(t *testing.T, c upstream.Config) *upstream.Server {
	t.Helper()
	if c.Clock == nil {
		c.Clock = upstream.Speed(1)
	}
	s, err := upstream.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// body is a request with a prompt of 40 characters, which are 10 tokens by estimate
// and 8 in truth, and some more fields.
func body(more string) string {
	return `{"model":"m","max_tokens":20,"messages":[{"role":"user","content":"` +
		strings.Repeat("aaaa ", 8) + `"}]` + more + `}`
}

func post(t *testing.T, path, body string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer key")
	return r
}

func ask(t *testing.T, s *upstream.Server, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	answer := httptest.NewRecorder()
	s.ServeHTTP(answer, post(t, path, body))
	return answer
}

// headers are those of a map, with "" for one that is missing.
func headers(h http.Header, want map[string]string) map[string]string {
	got := make(map[string]string, len(want))
	for name := range want {
		got[name] = h.Get(name)
	}
	return got
}

// fails is the error in a body, in whichever shape.
type fails struct {
	Type  string
	Error struct {
		Type, Code, Message string
		Details             struct {
			Code string `json:"error_code"`
		}
	}
}

func failure(t *testing.T, answer *httptest.ResponseRecorder) fails {
	t.Helper()
	var f fails
	if err := json.Unmarshal(answer.Body.Bytes(), &f); err != nil {
		t.Fatalf("%d %s: %v", answer.Code, answer.Body, err)
	}
	return f
}

const hint = 22 * time.Second

// refused is what each provider answers for each cause.
var refused = []struct {
	name              string
	api               upstream.API
	cause             upstream.Cause
	wait              time.Duration
	status            int
	kind, code        string
	after, ms, should string
	text              string
}{
	{
		"rate", upstream.OpenAI, upstream.InputTokens, hint, 429, "tokens", "rate_limit_exceeded", "22", "22000",
		"", "tokens per min",
	},
	{
		"requests", upstream.OpenAI, upstream.Requests, hint, 429, "requests", "rate_limit_exceeded", "22",
		"22000", "", "requests per min",
	},
	{
		"growth", upstream.OpenAI, upstream.SlowDown, hint, 429, "rate_limit_error", "slow_down", "22", "22000",
		"", "gradually",
	},
	{
		"overload", upstream.OpenAI, upstream.Overload, 0, 503, "service_unavailable_error",
		"server_is_overloaded", "", "", "", "overloaded",
	},
	{
		"credit", upstream.OpenAI, upstream.CreditBalance, 0, 429, "insufficient_quota",
		"credit_balance_exhausted", "", "", "", "",
	},
	{
		"organization", upstream.OpenAI, upstream.SpendCap, 0, 429, "insufficient_quota",
		"organization_spend_limit_exceeded", "", "", "", "",
	},
	{
		"older", upstream.OpenAI, upstream.InsufficientQuota, 0, 429, "insufficient_quota",
		"insufficient_quota", "", "", "", "quota",
	},
	{"rate", upstream.Azure, upstream.InputTokens, hint, 429, "", "429", "22", "22000", "", "Rate limit is exceeded"},
	{
		"overload", upstream.Azure, upstream.Overload, hint, 429, "", "429", "22", "22000", "",
		"System is experiencing high demand",
	},
	{
		"quota_with_a_hint", upstream.Azure, upstream.InsufficientQuota, 0, 429, "insufficient_quota",
		"insufficient_quota", "10", "10000", "", "",
	},
	{
		"rate", upstream.Anthropic, upstream.InputTokens, hint, 429, "rate_limit_error", "", "22", "", "",
		"input tokens per minute",
	},
	{
		"growth", upstream.Anthropic, upstream.SlowDown, hint, 429, "rate_limit_error", "", "22", "", "",
		"acceleration limits",
	},
	{"overload", upstream.Anthropic, upstream.Overload, 0, 529, "overloaded_error", "", "", "", "", "Overloaded"},
	{
		"enforced", upstream.Anthropic, upstream.SpendCap, 0, 429, "rate_limit_error", "enforced_spend_limit_reached",
		"", "", "", "You have reached your API usage limits. You will regain access on 2026-02-01 at 00:00 UTC.",
	},
	{
		"specified", upstream.Anthropic, upstream.SpecifiedLimit, 0, 400, "invalid_request_error", "", "", "", "",
		"You have reached your specified API usage limits",
	},
	{
		"workspace", upstream.Anthropic, upstream.WorkspaceLimit, 0, 400, "invalid_request_error", "", "", "", "",
		"You have reached your specified workspace API usage limits",
	},
	{
		"credit", upstream.Anthropic, upstream.CreditBalanceTooLow, 0, 400, "invalid_request_error", "",
		"", "", "false", "credit balance is too low",
	},
	{"billing", upstream.Anthropic, upstream.Billing, 0, 402, "billing_error", "", "", "", "", ""},
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, row := range refused {
		t.Run(string(row.api)+"/"+row.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := open(t, upstream.Config{API: row.api})
				fault := upstream.Fault{Kind: upstream.Refuse, Cause: row.cause, Wait: row.wait}
				if err := s.SetFaults(fault); err != nil {
					t.Fatal(err)
				}
				answer := ask(t, s, paths[row.api], body(""))
				f := failure(t, answer)
				got := []string{f.Error.Type, f.Error.Code + f.Error.Details.Code}
				if answer.Code != row.status || got[0] != row.kind || got[1] != row.code ||
					!strings.Contains(f.Error.Message, row.text) || (row.api == upstream.Anthropic) != (f.Type == "error") {
					t.Errorf("%d %s, want %d, %q, %q, %q", answer.Code, answer.Body, row.status, row.kind, row.code, row.text)
				}
				want := map[string]string{"Retry-After": row.after, "retry-after-ms": row.ms, "x-should-retry": row.should}
				if diff := cmp.Diff(want, headers(answer.Header(), want)); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
				call := s.Ledger().Calls[0]
				if call.Outcome != upstream.Refused || call.Cause != row.cause || call.Status != row.status ||
					call.Billed != (provider.Call{}) || call.Ended-call.Arrived != provider.RefusalTime {
					t.Errorf("ledger %+v", call)
				}
			})
		})
	}
}

func TestAccountsRefuse(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		api   upstream.API
		rules provider.Rules
		cause upstream.Cause
		after string
	}{
		{
			"openai_requests", upstream.OpenAI, upstream.Usual(upstream.OpenAI, provider.Limits{Requests: 1}),
			upstream.Requests, "60",
		},
		// 20 tokens are the limit of the answer, and more than the prompt.
		{
			"openai_tokens", upstream.OpenAI, upstream.Usual(upstream.OpenAI, provider.Limits{Input: 30}),
			upstream.InputTokens, "20",
		},
		// 10 and 20 are the estimate.
		{
			"azure_tokens", upstream.Azure, upstream.Usual(upstream.Azure, provider.Limits{Input: 59}),
			upstream.InputTokens, "60",
		},
		{
			"azure_requests", upstream.Azure,
			upstream.Usual(upstream.Azure, provider.Limits{Requests: 6, Input: 600}), upstream.Requests, "10",
		},
		{
			"anthropic_input", upstream.Anthropic,
			provider.Rules{Limits: provider.Limits{Input: 12}},
			upstream.InputTokens, "30",
		},
		// What was written is 20 tokens, 15 more than there were.
		{
			"anthropic_output", upstream.Anthropic,
			provider.Rules{Limits: provider.Limits{Output: 5}},
			upstream.OutputTokens, "180",
		},
		{"too_large", upstream.OpenAI, provider.Rules{Limits: provider.Limits{Input: 19}}, upstream.TooLarge, ""},
		{"spend_cap", upstream.Anthropic, provider.Rules{SpendCap: &provider.Span{}}, upstream.SpendCap, ""},
		{"growth", upstream.OpenAI, provider.Rules{Growth: provider.Growth{Above: 39}}, upstream.SlowDown, "60"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := open(t, upstream.Config{API: row.api, Rules: row.rules})
				first := ask(t, s, paths[row.api], body(""))
				answer := first
				if first.Code == http.StatusOK {
					answer = ask(t, s, paths[row.api], body(""))
				}
				calls := s.Ledger().Calls
				if last := calls[len(calls)-1]; last.Cause != row.cause || answer.Header().Get("Retry-After") != row.after {
					t.Errorf("%d %v %s, %+v: want %s and a hint of %q", answer.Code, answer.Header(), answer.Body, last,
						row.cause, row.after)
				}
			})
		})
	}
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	_, err := upstream.New(upstream.Config{
		API: "acme", Latency: -1, TokensPerSecond: -1, TokensPerEvent: -1, OutputTokens: 1e7, LedgerMax: -1,
		EstimateOutput: true, Rules: provider.Rules{Concurrent: -1},
	})
	for _, part := range []string{
		`api: "acme"`, "clock: missing", "latency: -1ns", "tokens per second: -1", "tokens per event: -1",
		"output tokens: 10000000", "ledger max: -1", "estimate output", "concurrent: -1",
	} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not say %q", err, part)
		}
	}
	s := open(t, upstream.Config{API: upstream.Anthropic})
	for want, fault := range map[string]upstream.Fault{
		`kind: ""`:               {},
		`cause: anthropic never`: {Kind: upstream.Refuse, Cause: upstream.ProjectSpend},
		`cause: a stream is not`: {Kind: upstream.Spoil, Cause: upstream.SpendCap},
		`after, calls: -1, 0`:    {Kind: upstream.Hang, After: -1},
		`after, calls: 0, -1`:    {Kind: upstream.Hang, Calls: -1},
		`wait: -1ns`:             {Kind: upstream.Refuse, Wait: -1},
	} {
		if err := s.SetFaults(fault); err == nil || !strings.Contains(err.Error(), "faults[0]: "+want) {
			t.Errorf("%+v: %v, want %s", fault, err, want)
		}
	}
}

func TestMistakesOfCallers(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, path, body, want string
		status                 int
	}{
		{"no_json", "/v1/chat/completions", "{", "could not parse the JSON body", 400},
		{"no_model", "/v1/chat/completions", `{"messages":[]}`, "model: Field required", 400},
		{"no_messages", "/v1/chat/completions", `{"model":"m"}`, "messages: Field required", 400},
		{"no_input", "/v1/embeddings", `{"model":"m"}`, "input: Field required", 400},
		{"limit", "/v1/chat/completions", `{"model":"m","messages":[],"max_tokens":0}`, "max_tokens: 0", 400},
		{"choices", "/v1/chat/completions", `{"model":"m","messages":[],"n":2}`, "n: 2", 400},
		{"path", "/v1/messages", `{}`, "Invalid URL (POST /v1/messages)", 404},
		{"size", "/v1/chat/completions", strings.Repeat(" ", 4<<20+1), "too large", 413},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := open(t, upstream.Config{API: upstream.OpenAI})
				answer := ask(t, s, row.path, row.body)
				if answer.Code != row.status || !strings.Contains(failure(t, answer).Error.Message, row.want) {
					t.Errorf("%d %s, want %d and %q", answer.Code, answer.Body, row.status, row.want)
				}
			})
		})
	}
	t.Run("no_key", func(t *testing.T) {
		t.Parallel()
		s := open(t, upstream.Config{API: upstream.OpenAI})
		answer, r := httptest.NewRecorder(), post(t, "/v1/chat/completions", body(""))
		r.Header.Del("Authorization")
		s.ServeHTTP(answer, r)
		if answer.Code != http.StatusUnauthorized || failure(t, answer).Error.Code != "invalid_api_key" {
			t.Errorf("%d %s", answer.Code, answer.Body)
		}
	})
}

func TestAFaultOfTwoCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, upstream.Config{API: upstream.Anthropic})
		if err := s.SetFaults(upstream.Fault{Kind: upstream.Refuse, Calls: 2}); err != nil {
			t.Fatal(err)
		}
		var statuses []int
		for range 4 {
			statuses = append(statuses, ask(t, s, paths[upstream.Anthropic], body("")).Code)
		}
		if diff := cmp.Diff([]int{529, 529, 200, 200}, statuses); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

func TestLedgerIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, upstream.Config{API: upstream.OpenAI, LedgerMax: 3})
		for n := range 5 {
			r := post(t, paths[upstream.OpenAI], body(""))
			r.Header.Set("x-client-id", strings.Repeat("c", 1000))
			r.Header.Set("x-retry-attempt", string(rune('0'+n)))
			if n == 3 {
				r.Header.Set("x-stainless-retry-count", "7")
			}
			s.ServeHTTP(httptest.NewRecorder(), r)
		}
		l := s.Ledger()
		attempts := ""
		for _, call := range l.Calls {
			attempts += fmt.Sprint(call.Attempt)
		}
		if attempts != "274" || l.Dropped != 2 || l.Outcomes[upstream.Served] != 5 || len(l.Calls[0].Client) != 128 ||
			l.Billed != (provider.Call{Input: 40, Output: 100}) || l.Underway != 0 {
			t.Errorf("attempts %s, %+v", attempts, l)
		}
	})
}

func TestCloseEndsWhatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, upstream.Config{API: upstream.Anthropic})
		if err := s.SetFaults(upstream.Fault{Kind: upstream.Hang}); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		request := post(t, paths[upstream.Anthropic], body(""))
		go func() {
			defer close(ended)
			s.ServeHTTP(httptest.NewRecorder(), request)
		}()
		synctest.Wait()
		if n := s.Ledger().Underway; n != 1 {
			t.Errorf("%d under way, want 1", n)
		}
		s.Close()
		<-ended
		if call := s.Ledger().Calls[0]; call.Outcome != upstream.Left || call.Billed.Output != 0 {
			t.Errorf("ledger %+v", call)
		}
		if answer := ask(t, s, paths[upstream.Anthropic], body("")); answer.Code != http.StatusServiceUnavailable {
			t.Errorf("after Close: %d", answer.Code)
		}
	})
}
