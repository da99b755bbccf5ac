package refuse

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"pgregory.net/rapid"

	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/gateway/provider"
	"github.com/quorlease/quorlease/client/httpmw"
)

func openAI(r Refusal) Answer { return r.HTTP(Asker{Body: provider.OpenAIBody}, rand.Int64N) }

// TestStatuses is which reason has which status.
func TestStatuses(t *testing.T) {
	t.Parallel()
	for reason, want := range map[Reason]struct {
		status int
		code   codes.Code
	}{
		Unidentified: {401, codes.Unauthenticated}, Forbidden: {403, codes.PermissionDenied},
		InFlight: {409, codes.Aborted}, TooLarge: {413, codes.ResourceExhausted},
		KeyReused: {422, codes.InvalidArgument}, Malformed: {400, codes.InvalidArgument},
		RetryBudget: {429, codes.ResourceExhausted}, Attempts: {429, codes.ResourceExhausted},
		SpendCap: {429, codes.ResourceExhausted}, Rate: {429, codes.ResourceExhausted},
		Concurrency: {429, codes.ResourceExhausted}, Quota: {429, codes.ResourceExhausted},
		Paused: {429, codes.ResourceExhausted}, QueueFull: {429, codes.ResourceExhausted},
		WaitExpired: {503, codes.Unavailable}, Capacity: {503, codes.Unavailable},
		CircuitOpen: {503, codes.Unavailable}, Undecided: {503, codes.Unavailable},
		Reason(-1): {503, codes.Unavailable}, Reason(99): {503, codes.Unavailable},
	} {
		r := Refusal{Reason: reason}
		a := openAI(r)
		_, err := r.GRPC(half)
		if a.Status != want.status || reason.Status() != want.status || status.Code(err) != want.code {
			t.Errorf("%s: %d and %s, want %d and %s", reason, a.Status, status.Code(err), want.status, want.code)
		}
	}
}

func TestARetryBudget(t *testing.T) {
	t.Parallel()
	budget := openAI(Refusal{Reason: RetryBudget})
	t.Run("is_429", func(t *testing.T) {
		if budget.Status != http.StatusTooManyRequests {
			t.Errorf("got %d, want 429", budget.Status)
		}
	})
	t.Run("S1-24_a_minute_and_no_retries", func(t *testing.T) {
		for name, want := range map[string]string{
			"Retry-After": "60", "Retry-After-Ms": "60000", "X-Should-Retry": "false", "X-Retry-Budget-Exceeded": "true",
		} {
			if got := budget.Header.Get(name); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		configured := openAI(Refusal{Reason: Attempts, Wait: 90 * time.Second})
		if got := configured.Header.Get("Retry-After"); got != "90" {
			t.Errorf("Retry-After %q, want the configured 90", got)
		}
		trailer, err := (&Refusal{Reason: RetryBudget}).GRPC(half)
		if got := strings.Join(trailer.Get("grpc-retry-pushback-ms"), ","); got != "-1" ||
			status.Code(err) != codes.ResourceExhausted {
			t.Errorf("%v with %q, want RESOURCE_EXHAUSTED with -1", err, got)
		}
	})
	t.Run("S1-25_nothing_else_says_that_the_client_is_the_problem", func(t *testing.T) {
		for i := range rows {
			reason := Reason(i)
			_, told := openAI(sample(reason)).Header["X-Retry-Budget-Exceeded"]
			if told != (reason == RetryBudget || reason == Attempts) {
				t.Errorf("%s: told %t", reason, told)
			}
		}
		for class := provider.None; class <= provider.Other; class++ {
			r, refused := Upstream(&provider.Verdict{Class: class, Wait: provider.Wait{Said: true, For: time.Minute}})
			if _, told := openAI(r).Header["X-Retry-Budget-Exceeded"]; refused && told {
				t.Errorf("%s of a provider: the client is the problem", class)
			}
		}
	})
}

func TestASpendCap(t *testing.T) {
	t.Parallel()
	t.Run("S3-27_no_hint_and_no_retries", func(t *testing.T) {
		r := Refusal{Reason: SpendCap, Wait: time.Hour}
		a := openAI(r)
		if a.Header.Get("X-Should-Retry") != "false" || a.Header.Get("Retry-After") != "" ||
			a.Header.Get("Retry-After-Ms") != "" {
			t.Errorf("%v, want no hint", a.Header)
		}
		trailer, _ := r.GRPC(half)
		if got := strings.Join(trailer.Get("grpc-retry-pushback-ms"), ","); got != "-1" {
			t.Errorf("pushback %q, want -1", got)
		}
	})
}

func TestAnIdentityIsMandatory(t *testing.T) {
	t.Parallel()
	t.Run("401_with_a_problem", func(t *testing.T) {
		w := httptest.NewRecorder()
		r := Refusal{Reason: Unidentified, Detail: "The header x-client-id is missing."}
		a := r.HTTP(Asker{}, half)
		a.Write(w)
		var body httpmw.Problem
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
			t.Fatal(err)
		}
		want := httpmw.Problem{Title: "Unauthorized", Status: 401, Detail: r.Detail, Reason: "UNIDENTIFIED"}
		if diff := cmp.Diff(want, body); w.Code != 401 || diff != "" ||
			w.Header().Get("Content-Type") != "application/problem+json" || w.Header().Get("Www-Authenticate") == "" {
			t.Errorf("%d %v (-want +got):\n%s", w.Code, w.Header(), diff)
		}
	})
}

func TestAnOpenCircuit(t *testing.T) {
	t.Parallel()
	t.Run("S2-17_fails_fast_with_what_is_left_of_it", func(t *testing.T) {
		for range 100 {
			r := Refusal{Reason: CircuitOpen, Wait: 17 * time.Second}
			a := r.HTTP(Asker{}, rand.Int64N)
			after, err := strconv.Atoi(a.Header.Get("Retry-After"))
			if err != nil || a.Status != 503 || after < 17 || after > 19 ||
				!strings.Contains(string(a.Body), "http-problem-types#temporary-reduced-capacity") {
				t.Fatalf("%d %v %s, want 503 and 17 s to 19", a.Status, a.Header, a.Body)
			}
		}
	})
}

// obeys are how clients treat a wait; false: they come back when they like.
var obeys = map[string]func(seconds float64) bool{
	"openai-python":    func(s float64) bool { return s > 0 && s <= 120 },
	"anthropic-python": func(s float64) bool { return s > 0 && s <= 60 },
	"anthropic-go":     func(s float64) bool { return s >= 0 && s < 60 },
	"azcore":           func(s float64) bool { return s <= 60 },
	"vercel":           func(s float64) bool { return s < 60 },
}

// TestHints wants every client to obey what will pass soon, nobody to be early, and
// no two crowds to be told one instant.
func TestHints(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		reason := Reason(rapid.IntRange(0, len(rows)-1).Draw(t, "reason"))
		wait := time.Duration(rapid.OneOf(
			rapid.Int64Range(-1, int64(40*24*time.Hour)), rapid.Int64Range(int64(50*time.Second), int64(SoonMax)),
		).Draw(t, "wait"))
		part := rapid.Int64Range(0, 999).Draw(t, "part")
		r := Refusal{Reason: reason, Wait: wait}
		hint := r.Hint(func(n int64) int64 { return n / 1000 * part })
		how := reason.row().hint
		switch {
		case hint.Said != (how != never):
			t.Fatalf("%s after %s: %+v", reason, wait, hint)
		case !hint.Said && hint.Wait != 0, hint.Said && hint.Wait < time.Millisecond:
			t.Fatalf("%s after %s: %+v", reason, wait, hint)
		case how == soon && (hint.Wait > SoonMax || hint.Stop), wait <= SoonMax && hint.Said && hint.Wait < wait:
			t.Fatalf("%s after %s: %+v", reason, wait, hint)
		case how == honest && wait > SoonMax && (hint.Wait < min(wait, waitMax) || !hint.Stop):
			t.Fatalf("%s after %s: %+v", reason, wait, hint)
		}
		for name, obey := range obeys {
			if how == soon && !obey(hint.Wait.Seconds()) {
				t.Fatalf("%s does not obey %s", name, hint.Wait)
			}
		}
		a := openAI(r)
		after, _ := strconv.ParseInt(a.Header.Get("Retry-After"), 10, 64)
		ms, _ := strconv.ParseInt(a.Header.Get("Retry-After-Ms"), 10, 64)
		if (after > 0) != hint.Said || after*1000 < ms || (after-1)*1000 >= max(ms, 1) {
			t.Fatalf("Retry-After %d, in milliseconds %d", after, ms)
		}
	})
}

func TestWhoIsToldTheSameDoesNotComeBackTogether(t *testing.T) {
	t.Parallel()
	for _, wait := range []time.Duration{0, time.Second, 30 * time.Second, 58 * time.Second, time.Hour} {
		seen := map[time.Duration]bool{}
		r := Refusal{Reason: QueueFull, Wait: wait}
		for range 1000 {
			seen[r.Hint(rand.Int64N).Wait] = true
		}
		if len(seen) < 100 {
			t.Errorf("a thousand that wait for %s are told %d times", wait, len(seen))
		}
	}
}

func TestProblemsForWhoAsks(t *testing.T) {
	t.Parallel()
	r := Refusal{Reason: Rate}
	for accept, want := range map[string]bool{
		"": false, "application/json": false, "*/*": false, "application/problem+json": true,
		"application/json, Application/Problem+JSON;q=0.5": true, "application/problem+json;q=0": false,
		"application/problem+json;q=x": false, ";;;,,": false, strings.Repeat("a,", 1<<16): false,
		"text/event-stream,application/problem+json; q=0.001": true,
	} {
		a := r.HTTP(Asker{Body: provider.OpenAIBody, Accept: accept}, half)
		if got := a.Header.Get("Content-Type") == "application/problem+json"; got != want {
			t.Errorf("%.60q: problem %t, want %t", accept, got, want)
		}
	}
}

func TestLimitsInFields(t *testing.T) {
	t.Parallel()
	h := http.Header{}
	SetLimits(h, []Policy{
		{Limit: "perhr", Quota: 1 << 53, Window: time.Hour, Left: 1 << 53, Known: true, Full: 90 * time.Second},
		{Limit: "a\"b\\c\u00e9\n", Dimension: "input_tokens", Quota: 7, Window: time.Millisecond},
		{Limit: "crew", Dimension: "slots", Left: -3, Known: true},
	})
	want := http.Header{
		"Ratelimit-Policy": {`"perhr";q=999999999999999;qu="requests";w=3600, ` +
			`"a\"b\\c??/input_tokens";q=7;qu="quorlease-input_tokens";w=1`},
		"Ratelimit": {`"perhr";r=999999999999999;t=90, "crew/slots";r=0`},
	}
	if diff := cmp.Diff(want, h); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	empty := http.Header{}
	if SetLimits(empty, nil); len(empty) != 0 {
		t.Errorf("%v of nothing", empty)
	}
}

func TestDenied(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		d    client.Decision
		want Refusal
	}{
		{
			"S1-06_each_limit_with_its_rest",
			client.Decision{
				Denials: []client.Denial{
					{Reason: "RATE", Limit: "b", Key: "k", Dimension: "tokens", RetryAfter: 5 * time.Second},
					{Reason: "CONCURRENCY", Limit: "a", Dimension: "slots", RetryAfter: time.Second},
				},
				Remaining: []client.Charge{
					{Limit: "b", Key: "x", Dimension: "tokens", Amount: 9},
					{Limit: "b", Key: "k", Dimension: "tokens", Amount: -4},
				},
			},
			Refusal{Reason: Rate, Wait: 5 * time.Second, Policies: []Policy{
				{Limit: "b", Dimension: "tokens", Reason: "RATE", Left: -4, Known: true},
				{Limit: "a", Dimension: "slots", Reason: "CONCURRENCY"},
			}},
		},
		{
			"the_own_queue",
			client.Decision{
				Denials: []client.Denial{{Reason: "QUEUE_FULL", Limit: "a", RetryAfter: time.Second}},
				Queue:   client.Queue{ETA: 40 * time.Second},
			},
			Refusal{Reason: QueueFull, Wait: 40 * time.Second, Policies: []Policy{{Limit: "a", Reason: "QUEUE_FULL"}}},
		},
		{
			"a_budget_before_a_limit",
			client.Decision{Denials: []client.Denial{
				{Reason: "RATE", Limit: "a", RetryAfter: time.Hour}, {Reason: "RETRY_BUDGET", RetryAfter: time.Second},
			}},
			Refusal{Reason: RetryBudget, Policies: []Policy{{Limit: "a", Reason: "RATE"}}},
		},
		{
			"a_block_before_a_rate",
			client.Decision{Denials: []client.Denial{
				{Reason: "RATE", Limit: "a", RetryAfter: time.Second}, {Reason: "BLOCKED", Limit: "b", Never: true},
			}},
			Refusal{Reason: SpendCap, Wait: time.Second, Policies: []Policy{
				{Limit: "a", Reason: "RATE"}, {Limit: "b", Reason: "BLOCKED"},
			}},
		},
		{
			"what_is_new_to_us",
			client.Decision{Denials: []client.Denial{{Reason: "MOON", RetryAfter: time.Second}}},
			Refusal{Reason: Undecided, Wait: time.Second},
		},
		{"nothing_said", client.Decision{}, Refusal{Reason: Undecided}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, Denied(&c.d)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestAGatewayBehindAGateway wants one to understand the other.
func TestAGatewayBehindAGateway(t *testing.T) {
	t.Parallel()
	for body, name := range map[provider.Body]string{
		provider.OpenAIBody: provider.NameCompatible, provider.AnthropicBody: provider.NameAnthropic,
		provider.GoogleBody: provider.NameGemini, provider.AWSBody: provider.NameBedrock,
	} {
		table, err := provider.Named(name)
		if err != nil {
			t.Fatal(err)
		}
		for reason, want := range map[Reason]provider.Class{
			Rate: provider.Transient, Concurrency: provider.Transient, QueueFull: provider.Transient,
			RetryBudget: provider.Transient, Attempts: provider.Transient, Paused: provider.Transient,
			SpendCap: provider.HardQuota, TooLarge: provider.TooLarge, Capacity: provider.Overload,
			CircuitOpen: provider.Overload, WaitExpired: provider.Overload, Undecided: provider.Overload,
			Unidentified: provider.Other, Forbidden: provider.Other, InFlight: provider.Other,
			KeyReused: provider.Other, Malformed: provider.Other,
		} {
			r := sample(reason)
			a := r.HTTP(Asker{Body: body}, half)
			v := table.Classify(provider.Answer{Status: a.Status, Header: a.Header, Body: a.Body})
			hint := r.Hint(half)
			if v.Class != want || v.Wait.Said != hint.Said || v.Wait.For != hint.Wait || hint.Stop && v.MayRetry() {
				t.Errorf("%s over %s is %s with %+v, want %s with %+v", reason, name, v.Class, v.Wait, want, hint)
			}
		}
	}
}

// FuzzRefusals wants whatever names come from outside to be in answers that can be
// read.
func FuzzRefusals(f *testing.F) {
	f.Add(1, "batch", "The detail.", "application/problem+json")
	f.Add(4, "\xff\n\" a\r\nX: y \u00e9", "\xc3", "*/*")
	f.Fuzz(func(t *testing.T, reason int, name, detail, accept string) {
		r := Refusal{
			Reason: Reason(reason), Client: name, Detail: detail, Scope: name, Wait: time.Second,
			Policies: []Policy{{
				Limit: name, Dimension: name, Reason: "RATE", Quota: 1, Known: true, Full: time.Second,
			}},
		}
		for body := provider.ProblemBody; body <= provider.AWSBody; body++ {
			a := r.HTTP(Asker{Body: body, Accept: accept, RequestID: name}, half)
			if !json.Valid(a.Body) {
				t.Errorf("%q", a.Body)
			}
			for field, values := range a.Header {
				if strings.ContainsAny(strings.Join(values, ""), "\r\n\x00") {
					t.Errorf("%s: %q", field, values)
				}
			}
			for _, field := range []string{"Ratelimit", "Ratelimit-Policy"} {
				if list, err := httpsfv.UnmarshalList(a.Header[field]); err != nil || len(list) != 1 {
					t.Errorf("%s: %q: %v", field, a.Header[field], err)
				}
			}
		}
		if _, err := r.GRPC(half); status.Code(err) == codes.OK {
			t.Errorf("%+v passes", r)
		}
	})
}
