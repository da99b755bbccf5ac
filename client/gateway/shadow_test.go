package gateway_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/gateway"
	"github.com/quorlease/quorlease/client/gateway/shadow"
)

// shadowLimits are soon used up.
const shadowLimits = `
limits:
- {name: tenant, match: {tenant: "*"}, per: [tenant], rate: {requests: 2/s}, burst: {requests: 5}}
retry_budgets: [{name: everybody, match: {client: "*"}, max_fraction: 20%, min_requests: 10}]
`

// asShadow makes a gateway forward everything, and shows the other settings of a comparison.
func asShadow(on bool, wait time.Duration) func(*gateway.Config) {
	return func(c *gateway.Config) {
		c.Shadow, c.NoSharing = on, true
		c.Classes = []gateway.Class{{MaxWait: wait}}
		// Whom a gateway suspects of retrying depends on what clients have heard, which differs.
		c.Attempts.Failures = 1 << 20
	}
}

// limitedNow is limited within a test that goes on after it.
func limitedNow(t *testing.T, text string, change func(*gateway.Config), f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := open(t, text, change)
		defer w.end()
		f(w)
	})
}

// panicking is an authority that can't be asked.
type panicking struct{ gateway.Authority }

// Acquire panics.
func (panicking) Acquire(context.Context, client.Request) (*client.Decision, error) { panic("no") }

// traffic is some of three clients, of which one retries a lot and one does not say who it is. It is the same each
// time. seen is called with each answer.
func (w *world) traffic(n int, seen func(client string, status int, reason string)) {
	chance := rand.New(rand.NewPCG(7, 7))
	for i := range n {
		client, attempt := []string{"calm", "storm", "other", ""}[chance.IntN(4)], "0"
		if client == "storm" && chance.IntN(2) == 0 {
			attempt = "1"
		}
		got := w.ask(w.t.Context(), prompt(fmt.Sprint(client, i)), "X-Client-Id", client, "X-Retry-Attempt", attempt,
			"Accept", "application/problem+json")
		reason := ""
		if _, after, is := strings.Cut(got.Body.String(), `"reason":"`); is {
			reason, _, _ = strings.Cut(after, `"`)
		}
		seen(client, got.Code, strings.ToLower(reason))
		pass(50 * time.Millisecond)
	}
}

// TestShadow: a gateway that only looks on says what one that decides does, and is not noticed.
func TestShadow(t *testing.T) {
	t.Parallel()
	t.Run("reports_what_a_gateway_refuses", func(t *testing.T) {
		want, rows := map[string]uint64{}, map[string]uint64{}
		var passed uint64
		limitedNow(t, shadowLimits, asShadow(false, -1), func(w *world) {
			w.traffic(300, func(client string, status int, reason string) {
				if status == http.StatusOK {
					passed++
					return
				}
				want[client+" "+reason]++
			})
		})
		var report shadow.Report
		limitedNow(t, shadowLimits, asShadow(true, -1), func(w *world) {
			w.traffic(300, func(client string, status int, _ string) {
				if status != http.StatusOK {
					t.Errorf("%s got %d from a shadow", client, status)
				}
			})
			report = w.Shadow()
			if hits := uint64(w.hits.Load()); hits != report.Requests {
				t.Errorf("%d of %d were forwarded", hits, report.Requests)
			}
		})
		for _, row := range report.Rows {
			rows[row.Client+" "+row.Reason] += row.Count
		}
		// Reports of retries come when they come: two gateways don't agree to the last one, either, and of what a
		// limit and the retry budget both refuse each is told now and then.
		budget := "storm retry_budget"
		if want[budget] < 10 || rows[budget] < 10 {
			t.Errorf("the retry budget refused %d, and would have refused %d", want[budget], rows[budget])
		}
		for _, counts := range []map[string]uint64{want, rows} {
			counts["storm rate"] += counts[budget]
			delete(counts, budget)
		}
		want["passed"], rows["passed"] = passed, report.Passed
		near := cmp.Comparer(func(a, b uint64) bool { return max(a, b)-min(a, b) <= 3 })
		if diff := cmp.Diff(want, rows, near); diff != "" || report.Undecided != 0 || len(want) != 5 {
			t.Errorf("%+v\n(-gateway +shadow)\n%s", report, diff)
		}
	})
	t.Run("says_how_long_it_would_have_waited", func(t *testing.T) {
		limitedNow(t, shadowLimits, asShadow(true, 10*time.Second), func(w *world) {
			for i := range 8 {
				w.ask(w.t.Context(), prompt(strconv.Itoa(i)))
				pass(time.Millisecond)
			}
			report := w.Shadow()
			if report.Waited != 3 || report.Refused != 0 || report.Rows[0].WaitMaxMs < 400 || report.Rows[0].WaitMaxMs > 600 {
				t.Errorf("%+v, want three that would have waited about half a second", report)
			}
		})
	})
	t.Run("charges_what_the_real_answer_says", func(t *testing.T) {
		slow := strings.Replace(limits, "rate: {tokens: 100_000/s}", "rate: {tokens: 1/h}", 1)
		limitedNow(t, slow, asShadow(true, -1), func(w *world) {
			before, _ := w.level("tenant", "a")
			w.ask(w.t.Context(), prompt("hi"))
			pass(200 * time.Millisecond)
			after, leases := w.level("tenant", "a")
			if spent := before["tokens"] - after["tokens"]; spent < 1 || spent > 100 || leases != 0 {
				t.Errorf("%d tokens are charged, %d leases are open", spent, leases)
			}
		})
	})
	t.Run("a_panic_of_a_decision_is_only_logged", func(t *testing.T) {
		limitedNow(t, limits, func(c *gateway.Config) {
			asShadow(true, -1)(c)
			c.Authority = panicking{c.Authority}
		}, func(w *world) {
			if got := w.ask(w.t.Context(), prompt("hi")); got.Code != http.StatusOK {
				t.Errorf("%d %s", got.Code, got.Body)
			}
			pass(time.Second)
			if report := w.Shadow(); report.Undecided != 1 || !strings.Contains(w.log.String(), "ended in a panic") {
				t.Errorf("%+v\n%s", report, w.log.String())
			}
		})
	})
}
