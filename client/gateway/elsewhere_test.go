package gateway_test

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorlease/quorlease/client/gateway"
	"github.com/quorlease/quorlease/client/gateway/fallback"
	"github.com/quorlease/quorlease/client/gateway/provider"
	"github.com/quorlease/quorlease/client/gateway/refuse"
	"github.com/quorlease/quorlease/client/gateway/who"
)

// dearLimits has a day's money for fallbacks beside the limits of all. Nothing closes a limit for
// what a provider says.
const dearLimits = `
limits:
- {name: deployment, match: {deployment: "*"}, per: [deployment],
   rate: {requests: 1000/s, tokens: 1_000_000/s}, burst: {requests: 1000, tokens: 1_000_000},
   classes: {live: {share: 60%}, critical: {share: 10%}, tool: {share: 10%}, batch: {share: 10%}}}
- {name: fallbacks, match: {fallback: "*"}, quota: {per: day, amounts: {cost: 5000}}}
- {name: spend, match: {tenant: "*"}, per: [tenant], quota: {per: day, amounts: {cost: 1_000_000}}}
retry_budgets: [{name: everybody, match: {client: "*"}}]
`

// dear is a gateway with a model that costs a micro-unit a token, and two that cost five.
func dear(c *gateway.Config) {
	openAI, main := c.Deployments[0].Provider, &c.Deployments[0]
	main.Models, main.Key, main.OutputMax = []string{"gpt-4o"}, "sk-main", 1000
	main.Fallback = fallback.Model{
		Price: &fallback.Price{Input: 1_000_000, Output: 1_000_000}, Latency: 2 * time.Second,
		To: []fallback.Target{
			{Deployment: "slow"}, {Deployment: "dear", Model: "big"}, {Deployment: "last", Model: "big"},
		},
	}
	other := func(name string, latency time.Duration) gateway.Deployment {
		return gateway.Deployment{
			Name: name, Provider: openAI, Upstream: &url.URL{Scheme: "https", Host: name + ".example"},
			Key: "sk-" + name, OutputMax: 1000, Models: []string{"big"}, Fallback: fallback.Model{
				Price: &fallback.Price{Input: 5_000_000, Output: 5_000_000}, Latency: latency,
				To: []fallback.Target{{Deployment: "gpt"}},
			},
		}
	}
	c.Deployments = append(c.Deployments,
		other("slow", time.Hour), other("dear", time.Second), other("last", time.Second))
	c.Fallback = fallback.Bound{Free: 4000}
	c.Classes = []gateway.Class{
		{Name: "live", MaxWait: 10 * time.Second},
		{Name: "critical", MaxWait: 10 * time.Second, Manner: fallback.Manner{Mode: fallback.Immediate}},
		{Name: "tool", MaxWait: 10 * time.Second, Manner: fallback.Manner{Mode: fallback.Fixed, Delay: 3 * time.Second}},
		{Name: "batch", MaxWait: time.Hour, Manner: fallback.Manner{Mode: fallback.Defer}},
	}
	book, err := who.New(who.Config{Loopback: true, Classes: []string{"live", "critical", "tool", "batch"}})
	if err != nil {
		panic(err)
	}
	c.Who = book
}

// at answers by the host that is asked.
func at(hosts map[string]func(*http.Request) *http.Response) func(*http.Request) *http.Response {
	return func(r *http.Request) *http.Response { return hosts[r.URL.Host](r) }
}

// hosts are those that were asked, in order.
func (w *world) hosts() string {
	var all []string
	for _, s := range w.all() {
		u, err := url.Parse(s.path)
		if err != nil {
			w.t.Fatal(err)
		}
		all = append(all, strings.TrimSuffix(u.Host, ".example"))
	}
	return strings.Join(all, " ")
}

type answers = map[string]func(*http.Request) *http.Response

// TestFallbacks: what becomes of a call whose model says no, by class.
func TestFallbacks(t *testing.T) {
	for _, row := range []struct {
		name, class string
		main, dear  func(*http.Request) *http.Response
		want        string
		status      int
	}{
		{"S2-28_not_on_the_first_429", "live", once(busy("1"), fine), fine, "api api", http.StatusOK},
		{"S2-28_not_on_the_first_429_with_a_long_wait", "live", busy("60"), fine, "api", http.StatusTooManyRequests},
		{"S2-28_when_all_tries_are_used_up", "live", busy("1"), fine, "api api api dear", http.StatusOK},
		{"S2-28_on_the_first_429_of_a_critical_class", "critical", busy("60"), fine, "api dear", http.StatusOK},
		{"one_that_refuses_is_asked_once", "critical", once(busy("1"), fine), busy("1"), "api dear last api", http.StatusOK},
		{"one_that_errs_is_told_to_nobody", "critical", busy("60"), func(*http.Request) *http.Response {
			return says(http.StatusBadRequest, `{"error":{"message":"no such model"}}`)
		}, "api dear last", http.StatusTooManyRequests},
		{"S2-33_a_small_tool_waits_as_long_each_time", "tool", busy("1"), fine, "api api api", http.StatusTooManyRequests},
		{"S2-33_a_batch_waits", "batch", once(busy("60"), fine), fine, "api api", http.StatusOK},
	} {
		t.Run(row.name, func(t *testing.T) {
			limited(t, dearLimits, dear, func(t *testing.T, w *world) {
				w.answer = at(answers{"api.example": row.main, "dear.example": row.dear, "last.example": row.dear})
				got := w.ask(t.Context(), prompt("hi"), "X-Quorlease-Class", row.class)
				if got.Code != row.status || w.hosts() != row.want {
					t.Fatalf("%d after %q; want %d after %q: %s", got.Code, w.hosts(), row.status, row.want, got.Body)
				}
				said := got.Header().Get("X-Quorlease-Fallback")
				if fell := strings.HasSuffix(row.want, "dear"); fell != (said == "dear") {
					t.Errorf("the answer says %q", said)
				}
				s := w.Stats()
				if s.Money.Held != 0 || s.Money.Answered > 0 != (said != "") {
					t.Errorf("%+v", s.Money)
				}
				var pauses []time.Duration
				all := w.all()
				for i := 1; i < len(all); i++ {
					pauses = append(pauses, all[i].at.Sub(all[i-1].at).Round(time.Second/2))
				}
				if row.class == "tool" && (len(pauses) != 2 || pauses[0] != 3*time.Second || pauses[1] != 3*time.Second) {
					t.Errorf("it waits %v", pauses)
				}
			})
		})
	}
}

// TestFallbackRequest: what a fallback is sent, charged and settled with.
func TestFallbackRequest(t *testing.T) {
	limited(t, dearLimits, dear, func(t *testing.T, w *world) {
		w.answer = at(answers{"api.example": busy("60"), "dear.example": fine})
		got := w.ask(t.Context(), prompt("hi"), "X-Quorlease-Class", "critical", "Authorization", "Bearer of-the-client")
		if got.Code != http.StatusOK {
			t.Fatalf("%d %s", got.Code, got.Body)
		}
		sent := w.all()[1]
		if want := strings.Replace(prompt("hi"), "gpt-4o", "big", 1); sent.body != want ||
			sent.header.Get("Authorization") != "Bearer sk-dear" {
			t.Errorf("sent %q with %v", sent.body, sent.header)
		}
		pass(5 * time.Second)
		// 27 tokens at five.
		used := int64(27 * 5)
		if left, leases := w.level("fallbacks", ""); left["cost"] != 5000-used || leases != 0 {
			t.Errorf("%v of the day's money for fallbacks are left, with %d leases", left, leases)
		}
		if left, _ := w.level("spend", "a"); left["cost"] != 1_000_000-used {
			t.Errorf("%v of the tenant's money are left", left)
		}
		if s := w.Stats().Money; s.Fallback != uint64(used) || s.First != 0 || s.Answered != 1 {
			t.Errorf("%+v", s)
		}
	})
}

// unreached is a transport that does not reach one host.
type unreached struct{ http.RoundTripper }

// RoundTrip sends, or does not.
func (u unreached) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host == "api.example" {
		return nil, errors.New("connection refused")
	}
	return u.RoundTripper.RoundTrip(r)
}

// TestFallbackUnreached: where nothing was sent a critical class falls back, and a client's own
// key goes to nobody but the provider that it was for.
func TestFallbackUnreached(t *testing.T) {
	limited(t, dearLimits, func(c *gateway.Config) {
		dear(c)
		c.Deployments[0].Key, c.Deployments[1].Key = "", ""
		c.Transport = unreached{c.Transport}
	}, func(t *testing.T, w *world) {
		for _, row := range []struct {
			class  string
			status int
		}{{"live", http.StatusServiceUnavailable}, {"critical", http.StatusOK}} {
			got := w.ask(t.Context(), prompt("hi"), "X-Quorlease-Class", row.class, "Authorization", "Bearer of-the-client")
			if got.Code != row.status {
				t.Errorf("%s: %d %s", row.class, got.Code, got.Body)
			}
		}
		all := w.all()
		if len(all) != 1 || all[0].header.Get("Authorization") != "" {
			t.Errorf("%d were sent: %v", len(all), all)
		}
	})
}

// TestFallbackBounds: the share of this gateway and the limit of all of them.
func TestFallbackBounds(t *testing.T) {
	ask := func(t *testing.T, w *world, text string) int {
		t.Helper()
		return w.ask(t.Context(), prompt(text), "X-Quorlease-Class", "critical", "X-Coalesce", "false").Code
	}
	refuses := answers{"api.example": busy("60"), "dear.example": fine, "last.example": fine}
	t.Run("S2-28_what_is_free_and_then_a_share", func(t *testing.T) {
		limited(t, dearLimits, func(c *gateway.Config) {
			dear(c)
			// More than one call may cost, and less than two may.
			c.Fallback = fallback.Bound{ShareBP: 1000, Free: 700}
		}, func(t *testing.T, w *world) {
			w.answer = at(refuses)
			for i, want := range []int{http.StatusOK, http.StatusOK, http.StatusTooManyRequests} {
				// Each costs 135 in the end, and the third might cost more than is left.
				if got := ask(t, w, strings.Repeat("x", i+1)); got != want {
					t.Errorf("call %d: %d; %+v", i, got, w.Stats().Money)
				}
			}
			if s := w.Stats().Money; s.Short == 0 || s.Answered != 2 {
				t.Errorf("%+v", s)
			}
		})
	})
	t.Run("S2-28_the_authority_has_the_last_word", func(t *testing.T) {
		limited(t, strings.Replace(dearLimits, "cost: 5000", "cost: 700", 1), dear, func(t *testing.T, w *world) {
			w.answer = at(refuses)
			for i := range 6 {
				ask(t, w, strings.Repeat("x", i+1))
				pass(time.Second)
			}
			left, _ := w.level("fallbacks", "")
			if s := w.Stats(); left["cost"] < 0 || s.Money.Answered == 0 || s.Money.Failed == 0 || s.Money.Short != 0 ||
				s.Refusals[refuse.Paused]+s.Refusals[refuse.CircuitOpen] == 0 {
				t.Errorf("%v left; %+v, refused %v", left, s.Money, s.Refusals)
			}
		})
	})
	t.Run("a_circuit_that_is_open", func(t *testing.T) {
		limited(t, dearLimits, dear, func(t *testing.T, w *world) {
			w.answer = at(refuses)
			for range 3 {
				w.ask(t.Context(), prompt("open"), "X-Quorlease-Class", "tool")
			}
			w.answer = at(answers{"api.example": busy("1"), "dear.example": fine})
			w.ask(t.Context(), prompt("opens"), "X-Quorlease-Class", "tool")
			before := len(w.all())
			got := w.ask(t.Context(), prompt("hi"), "X-Quorlease-Class", "live")
			if got.Code != http.StatusOK || w.Stats().Circuits.Open == 0 || len(w.all()) != before+1 {
				t.Errorf("%d %s, %d were sent, %+v", got.Code, got.Body, len(w.all())-before, w.Stats().Circuits)
			}
		})
	})
}

// TestFallbackShared: followers share the answer of a fallback with their leader, and those of
// another class do not.
func TestFallbackShared(t *testing.T) {
	limited(t, dearLimits, dear, func(t *testing.T, w *world) {
		w.answer = at(answers{"api.example": busy("2"), "dear.example": func(r *http.Request) *http.Response {
			pass(time.Second)
			return fine(r)
		}})
		var joined sync.WaitGroup
		for _, class := range []string{"critical", "critical", "tool"} {
			joined.Go(func() {
				got := w.ask(t.Context(), prompt("same"), "X-Quorlease-Class", class)
				if fell := got.Header().Get("X-Quorlease-Fallback") == "dear"; fell != (class == "critical") {
					t.Errorf("%s: %d, fell back %v", class, got.Code, fell)
				}
			})
		}
		joined.Wait()
		if s := w.Stats(); s.Money.Answered != 1 || s.Shared.Coalesced != 1 {
			t.Errorf("%+v %+v", s.Money, s.Shared)
		}
	})
}

// TestFallbackStreams: a stream that has begun is not begun again elsewhere; one whose first
// event refuses is.
func TestFallbackStreams(t *testing.T) {
	stream := func(text string) func(*http.Request) *http.Response {
		return func(*http.Request) *http.Response {
			answer := says(http.StatusOK, text, "Content-Type", "text/event-stream")
			answer.ContentLength = -1
			return answer
		}
	}
	const limit = `data: {"error":{"message":"Rate limit reached","type":"tokens","code":"rate_limit_exceeded"}}` + "\n\n"
	const some = `data: {"choices":[{"index":0,"delta":{"content":"he"}}]}` + "\n\n"
	body := strings.Replace(prompt("hi"), `{`, `{"stream":true,`, 1)
	for _, row := range []struct{ name, text, want string }{
		{"refused_before_it_began", limit, "api dear"},
		{"refused_after_it_began", some + limit, "api"},
	} {
		t.Run(row.name, func(t *testing.T) {
			limited(t, dearLimits, dear, func(t *testing.T, w *world) {
				w.answer = at(answers{"api.example": stream(row.text), "dear.example": stream(some + "data: [DONE]\n\n")})
				got := w.ask(t.Context(), body, "X-Quorlease-Class", "critical")
				if got.Code != http.StatusOK || w.hosts() != row.want {
					t.Errorf("%d after %q; want %q: %s", got.Code, w.hosts(), row.want, got.Body)
				}
			})
		})
	}
}

// TestFallbackFormats: what can't be sent elsewhere is a mistake in the configuration.
func TestFallbackFormats(t *testing.T) {
	t.Parallel()
	anthropic, err := provider.Named(provider.NameAnthropic)
	if err != nil {
		t.Fatal(err)
	}
	var c gateway.Config
	openAI, err := provider.Named(provider.NameOpenAI)
	if err != nil {
		t.Fatal(err)
	}
	c.Deployments = []gateway.Deployment{{Name: "gpt", Provider: openAI}}
	dear(&c)
	c.Deployments[2].Provider = anthropic
	var said []error
	c.CheckFallbacks(func(at, format string, args ...any) { said = append(said, errors.New(at)) })
	if len(said) != 2 || said[0].Error() != "deployments[0].fallbacks[1].deployment" {
		t.Errorf("%v", said)
	}
}
