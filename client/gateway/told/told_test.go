package told

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/feedback"
	"github.com/quorlease/quorlease/client/gateway/circuit"
	"github.com/quorlease/quorlease/client/gateway/provider"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const second = time.Second

// pass lets virtual time pass, and everybody do what is due.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// report is what was told at once.
type report struct {
	at      time.Duration
	answers []feedback.Answer
}

// authority is what a Teller tells. It takes everything, unless the test says otherwise.
type authority struct {
	began time.Time
	// takes is how long a report takes, and makes what becomes of it.
	takes time.Duration
	makes func(answers []feedback.Answer) ([]feedback.Controlled, error)

	mu      sync.Mutex
	reports []report
}

func (a *authority) Feedback(ctx context.Context, answers ...feedback.Answer) ([]feedback.Controlled, error) {
	at := time.Since(a.began)
	select {
	case <-time.After(a.takes):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	done, err := make([]feedback.Controlled, len(answers)), error(nil)
	if a.makes != nil {
		done, err = a.makes(answers)
	} else {
		for i, one := range answers {
			done[i] = feedback.Controlled{Paused: one.Wait, PacePPM: 1e6}
		}
	}
	if err == nil {
		a.reports = append(a.reports, report{at, answers})
	}
	return done, err
}

// told are the reports so far, and all that was in them.
func (a *authority) told() (reports []report, answers []feedback.Answer) {
	synctest.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range a.reports {
		answers = append(answers, r.answers...)
	}
	return append(reports, a.reports...), answers
}

// set changes what becomes of reports.
func (a *authority) set(makes func([]feedback.Answer) ([]feedback.Controlled, error)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.makes = makes
}

// bubble runs f in virtual time with a Teller of its own, which is closed then.
func bubble(t *testing.T, c Config, f func(t *testing.T, a *authority, teller *Teller)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		a := &authority{began: time.Now()}
		if c.Authority == nil {
			c.Authority = a
		}
		teller, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		defer teller.Close()
		f(t, a, teller)
		_ = teller.Close()
		if n := len(teller.mu.queue.byPlace); n > teller.config.Queue {
			t.Errorf("%d answers are kept, at most %d", n, teller.config.Queue)
		}
	})
}

func about(tenant string) About { return About{Tenant: tenant, Deployment: "d"} }

// classified is what a provider's answer means.
func classified(t testing.TB, name string, code int, header map[string]string, body string) *provider.Verdict {
	t.Helper()
	table, err := provider.Named(name)
	if err != nil {
		t.Fatal(err)
	}
	h := http.Header{}
	for field, value := range header {
		h.Set(field, value)
	}
	v := table.Classify(provider.Answer{Status: code, Header: h, Body: []byte(body), Wall: time.Now()})
	return &v
}

func throttled(wait time.Duration) *provider.Verdict {
	return &provider.Verdict{
		Class: provider.Transient, Reason: "rate_limit_exceeded", Wait: provider.Wait{Said: wait > 0, For: wait},
	}
}

func overloaded(wait time.Duration) *provider.Verdict {
	return &provider.Verdict{Class: provider.Overload, Wait: provider.Wait{Said: wait > 0, For: wait}}
}

// left is an answer whose headers say what is left.
func left(requests int64) *provider.Verdict {
	return &provider.Verdict{Limits: provider.Limits{Seen: []provider.Limit{
		{Dimension: provider.Requests, Limit: -1, Remaining: requests},
	}}}
}

func refusal(code codes.Code, reason string) error {
	s, err := status.New(code, "refused").WithDetails(&errdetails.ErrorInfo{Domain: "quorlease", Reason: reason})
	if err != nil {
		panic(err)
	}
	return fmt.Errorf("tell what a provider answered: %w", s.Err())
}

func tenant(name string) circuit.Key { return circuit.Key{Tenant: name, Deployment: "d"} }

var everybody = circuit.Key{Deployment: "d", All: true}

// learns checks what a circuit gets.
func learns(t *testing.T, teller *Teller, key circuit.Key, want time.Duration) {
	t.Helper()
	n, news := teller.Learn(0, key)
	if news != (want > 0) || n.Wait != want || n.Closed || news && n.Overloaded != key.All {
		t.Errorf("%+v learns %+v, %v; want %v", key, n, news, want)
	}
}

func TestTell(t *testing.T) {
	t.Run("S1-05_a_429_is_told_at_once_and_closes_the_circuit_for_its_wait", func(t *testing.T) {
		bubble(t, Config{}, func(t *testing.T, a *authority, teller *Teller) {
			v := classified(t, "openai", 429,
				map[string]string{"Retry-After": "22", "X-Ratelimit-Remaining-Tokens": "0"},
				`{"error":{"code":"rate_limit_exceeded","message":"Rate limit reached for tokens per min"}}`)
			teller.Tell(About{
				Tenant: "a", Deployment: "d", Attributes: map[string]string{"tenant": "a", "deployment": "d", "model": "m"},
			}, v)
			reports, answers := a.told()
			if len(answers) != 1 || reports[0].at != 0 {
				t.Fatalf("%+v, want one at once", reports)
			}
			got := answers[0]
			if got.Kind != feedback.Throttled || got.Wait != 22*second || got.Attributes["model"] != "m" ||
				got.Remaining["tokens"] != 0 || len(got.Remaining) != 1 || got.Limit != "" {
				t.Errorf("told %+v", got)
			}
			pass(second)
			learns(t, teller, tenant("a"), 21*second)
			learns(t, teller, tenant("a"), 0)
			learns(t, teller, tenant("b"), 0)
			learns(t, teller, everybody, 0)
		})
	})
	t.Run("S2-35_each_kind", func(t *testing.T) {
		bubble(t, Config{}, func(t *testing.T, a *authority, teller *Teller) {
			a.takes = 10 * time.Millisecond
			teller.Tell(about("first"), left(1))
			synctest.Wait()
			teller.Tell(about("a"), left(7))
			teller.Tell(About{Tenant: "a", Deployment: "d", Limit: "account", Key: "k"}, overloaded(30*second))
			teller.Tell(about("a"), &provider.Verdict{Class: provider.Acceleration, Reason: "slow_down"})
			teller.Tell(about("a"), &provider.Verdict{Class: provider.HardQuota, Reason: "insufficient_quota"})
			teller.Tell(about("a"), &provider.Verdict{Class: provider.Other})
			teller.Tell(about("a"), &provider.Verdict{})
			pass(200 * time.Millisecond)
			_, answers := a.told()
			answers = answers[1:]
			want := []feedback.Kind{feedback.SpendCap, feedback.Overloaded, feedback.Acceleration, feedback.Observed}
			for i, kind := range want {
				if len(answers) != len(want) || answers[i].Kind != kind {
					t.Fatalf("told %+v, want %v in this order", answers, want)
				}
			}
			if answers[1].Limit != "account" || answers[1].Key != "k" || answers[1].Attributes != nil {
				t.Errorf("by name: %+v", answers[1])
			}
			if at := answers[3].Attributes; at["tenant"] != "a" || at["deployment"] != "d" || len(at) != 2 {
				t.Errorf("attributes %v", at)
			}
			learns(t, teller, everybody, 30*second-190*time.Millisecond)
			learns(t, teller, tenant("a"), 0)
		})
	})
	t.Run("S3-24_what_is_told_late_says_what_is_left_of_the_wait", func(t *testing.T) {
		bubble(t, Config{}, func(t *testing.T, a *authority, teller *Teller) {
			a.set(func([]feedback.Answer) ([]feedback.Controlled, error) { return nil, context.DeadlineExceeded })
			teller.Tell(about("a"), throttled(60*second))
			teller.Tell(about("b"), throttled(0))
			pass(5 * second)
			teller.Tell(about("b"), throttled(3*second))
			pass(10 * second)
			a.set(nil)
			pass(3 * second)
			reports, answers := a.told()
			if len(answers) != 1 || reports[0].at < 15*second || answers[0].Attributes["tenant"] != "a" ||
				reports[0].at+answers[0].Wait != 60*second {
				t.Errorf("told %+v, want one that ends at 60 s", reports)
			}
			if s := teller.Stats(); s.Stale != 1 || s.Merged != 1 || s.Told != 1 || s.Failed < 5 || s.Failed > 20 {
				t.Errorf("%+v", s)
			}
		})
	})
	t.Run("S3-01_of_headers_the_newest_counts", func(t *testing.T) {
		bubble(t, Config{}, func(t *testing.T, a *authority, teller *Teller) {
			for n := range int64(1000) {
				teller.Tell(about("a"), left(1000-n))
				pass(time.Millisecond)
			}
			pass(second)
			reports, answers := a.told()
			if n := len(reports); n < 4 || n > 6 {
				t.Errorf("%d reports in a second, want one each 250 ms", n)
			}
			for i := range reports[1:] {
				if gap := reports[i+1].at - reports[i].at; gap < 250*time.Millisecond {
					t.Errorf("%v between two reports", gap)
				}
			}
			if last := answers[len(answers)-1].Remaining["requests"]; last != 1 {
				t.Errorf("%d are left at last, want 1", last)
			}
			if s := teller.Stats(); s.Told+s.Merged != 1000 || s.Lost != 0 {
				t.Errorf("%+v, want 1,000", s)
			}
		})
	})
}

// TestStorm: what everybody is told at once costs a handful of reports.
func TestStorm(t *testing.T) {
	t.Run("S1-05_ten_thousand_429s_a_second", func(t *testing.T) {
		bubble(t, Config{}, func(t *testing.T, a *authority, teller *Teller) {
			a.takes = 2 * time.Millisecond
			const ticks, each = 1000, 100
			for range ticks {
				for range each {
					teller.Tell(about("a"), throttled(22*second))
				}
				pass(10 * time.Millisecond)
			}
			pass(2 * second)
			reports, answers := a.told()
			if n := len(reports); n < 10 || n > 12 {
				t.Errorf("%d reports in ten seconds", n)
			}
			last := reports[len(reports)-1]
			if end := last.at + last.answers[0].Wait; end != 10*second-10*time.Millisecond+22*second {
				t.Errorf("it is closed until %v, the last wait ends at 31.99 s", end)
			}
			if s := teller.Stats(); s.Told+s.Merged != ticks*each || s.Told != uint64(len(answers)) || s.Waiting != 0 {
				t.Errorf("%+v, want %d answers", s, ticks*each)
			}
		})
	})
	t.Run("S2-01_of_a_thousand_tenants", func(t *testing.T) {
		bubble(t, Config{}, func(t *testing.T, a *authority, teller *Teller) {
			a.takes = 2 * time.Millisecond
			for round := range 500 {
				for n := range 100 {
					teller.Tell(about(fmt.Sprint("tenant ", (round*100+n)%1000)), throttled(30*second))
				}
				pass(10 * time.Millisecond)
			}
			pass(2 * second)
			reports, _ := a.told()
			seen := map[string]bool{}
			for i, r := range reports {
				for _, one := range r.answers {
					seen[one.Attributes["tenant"]] = true
				}
				if i > 0 && r.at-reports[i-1].at < reportGap {
					t.Errorf("%v between two reports", r.at-reports[i-1].at)
				}
			}
			s := teller.Stats()
			if len(seen) != 1000 || len(reports) > 51*7 || s.Told+s.Merged != 50_000 || s.Lost != 0 {
				t.Errorf("%d tenants in %d reports, %+v", len(seen), len(reports), s)
			}
			t.Logf("50,000 in 5 s: %d reports, %d told", len(reports), s.Told)
		})
	})
	t.Run("S3-27_headers_make_room_for_refusals_and_these_for_spend_caps", func(t *testing.T) {
		bubble(t, Config{Queue: 64}, func(t *testing.T, a *authority, teller *Teller) {
			a.takes = second
			teller.Tell(about("first"), left(1))
			synctest.Wait()
			for n := range 200 {
				teller.Tell(about(fmt.Sprint("headers ", n)), left(1))
			}
			for n := range 62 {
				teller.Tell(about(fmt.Sprint("refused ", n)), throttled(second))
			}
			teller.Tell(about("late"), left(1))
			teller.Tell(about("later"), left(1))
			teller.Tell(about("poor"), &provider.Verdict{Class: provider.HardQuota, Reason: "billing_error"})
			teller.Tell(about("poorer"), &provider.Verdict{Class: provider.HardQuota, Reason: "billing_error"})
			pass(5 * second)
			_, answers := a.told()
			kinds := map[feedback.Kind]int{}
			for _, one := range answers {
				kinds[one.Kind]++
			}
			if kinds[feedback.SpendCap] != 2 || kinds[feedback.Throttled] != 61 || kinds[feedback.Observed] != 1 {
				t.Errorf("told %v", kinds)
			}
			if s := teller.Stats(); s.Told != 64 || s.Lost != 203 || s.Waiting != 0 {
				t.Errorf("%+v, want all that had no room lost", s)
			}
		})
	})
}

// A client is what it is made for.
var (
	_ Feedbacker     = (*client.Client)(nil)
	_ Asker          = (*client.Client)(nil)
	_ circuit.Shared = (*Teller)(nil)
	_ circuit.Shared = (*Prober)(nil)
	_ circuit.Prober = (*Prober)(nil)
)
