package storm

import (
	"fmt"
	"testing"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/bench/provider"
	"github.com/quorlease/quorlease/bench/storm/authority"
)

// TestAJobThatNobodyAnnounced: forty thousand items of two jobs that the limits do not
// name begin at once. They get what live work leaves, by their weights, to the end, and
// live work does not feel them.
func TestAJobThatNobodyAnnounced(t *testing.T) {
	t.Parallel()
	t.Run("S1-04", func(t *testing.T) {
		t.Parallel()
		const items, perSecond, live, workers = 40_000, 200, 20.0, 40
		w := newWorld(1)
		limit := authority.Limit(deployment, authority.Dimension(provider.Requests, perSecond, time.Second, 20))
		limit.Classes = []*logv1.Class{{Name: liveClass, Share: 3000, Burst: 5000}, {Name: batchClass}}
		limit.Queue.Weights = []*logv1.Weight{{Client: "scorer", Weight: 3}}
		cluster := authority.New(w.Stage, 3, &logv1.ApplyLimits{Limits: []*logv1.Limit{limit}})
		ask := func(client, class string, patience time.Duration, done func(a authority.Answer)) {
			cluster.Acquire(&authority.Ask{
				Operation: &logv1.Acquire{
					Client: client, Class: class, Charges: []*logv1.Charge{authority.Charge(deployment, "", provider.Requests, 1)},
				},
				MaxWait: patience, Done: done,
			})
		}
		// One job weighs three times the other and has three times as many items.
		left := map[string]int{"scorer": items * 3 / 4, "import": items / 4}
		ended := map[string]time.Duration{}
		refused := 0
		var work func(job string)
		work = func(job string) {
			if left[job] == 0 {
				return
			}
			left[job]--
			ask(job, batchClass, time.Hour, func(a authority.Answer) {
				if !a.Granted {
					refused++
				}
				ended[job] = w.Real()
				work(job)
			})
		}
		for job := range left {
			for range workers {
				w.At(nil, 0, func() { work(job) })
			}
		}
		var waits []time.Duration
		w.poisson(live*60, 5*time.Minute, func() {
			ask("chat", liveClass, 10*time.Second, func(a authority.Answer) {
				if !a.Granted {
					refused++
				}
				waits = append(waits, a.Waited)
			})
		})
		w.until(5 * time.Minute)
		takes := items / (perSecond - live)
		for job, at := range ended {
			near(t, job+" ends after seconds", at.Seconds(), takes, 0.03*takes)
		}
		if left["scorer"]+left["import"]+refused+cluster.Waiting() != 0 {
			t.Errorf("%v are left, %d were refused", left, refused)
		}
		if p99 := quantile(waits, 0.99); len(waits) < 5000 || p99 > 250*time.Millisecond {
			t.Errorf("%d live acquires waited %v as their p99", len(waits), p99)
		}
	})
}

// leasedModel counts the calls of a tenant that no open lease stands behind.
type leasedModel struct {
	provider.Model
	fleet *leased
	bare  *int
}

func (m leasedModel) Ask(now time.Duration, call provider.Call) provider.Answer {
	if m.fleet.inFlight > m.fleet.cluster.Machine().Counts().OpenLeases {
		*m.bare++
	}
	return m.Model.Ask(now, call)
}

// TestNoCallWithoutALease: the authority's yes comes before the provider. Jobs that lose
// patience in front of a narrow gate go without, and do not call.
func TestNoCallWithoutALease(t *testing.T) {
	t.Parallel()
	t.Run("S2-09", func(t *testing.T) {
		t.Parallel()
		l := newLeased(1, &Outcome{}, narrowGate)
		l.patience = 10 * time.Second
		bare, turned := 0, 0
		l.models[importer] = leasedModel{l.models[importer], l, &bare}
		serve := l.serve
		l.serve = func(j *job, end func(ok bool)) {
			serve(j, func(ok bool) {
				if !ok {
					turned++
				}
				end(ok)
			})
		}
		l.importOnly(29 * time.Second)
		if bare != 0 {
			t.Errorf("%d of %d calls had no lease", bare, l.importer.attempts)
		}
		if l.importer.attempts < 10 || turned < 1000 || l.refused != 0 {
			t.Errorf("%d calls, %d jobs were turned away, %d refused by the provider; want some, most and none",
				l.importer.attempts, turned, l.refused)
		}
	})
}

// TestRetriesFitIntoTheHeadroom: a limit hands out four fifths of what the provider
// can, and the retry budget admits a fifth of all requests as retries: a quarter of four
// fifths. When every call fails, retries fill the headroom and no more, so that the
// provider's limit refuses nobody.
func TestRetriesFitIntoTheHeadroom(t *testing.T) {
	t.Parallel()
	t.Run("S3-40", func(t *testing.T) {
		t.Parallel()
		const perMinute, target, length = 600, 8000, 30 * time.Minute
		w := newWorld(1)
		limit := authority.Limit(deployment, authority.Dimension(provider.Requests, perMinute, time.Minute, 10))
		limit.Target = target
		// First attempts are paced, and retries come out of the headroom.
		budget := authority.Budget()
		budget.Scope = logv1.Scope_SCOPE_RETRIES
		cluster := authority.New(w.Stage, 3, &logv1.ApplyLimits{
			Limits: []*logv1.Limit{limit}, RetryBudgets: []*logv1.RetryBudget{budget},
		})
		model := provider.NewBuckets(provider.Limits{Requests: perMinute}, provider.Options{Capacity: 20 * time.Second})
		firsts, again, over := 0, 0, 0
		call := func(attempt int) {
			if !model.Ask(w.Real(), provider.Call{}).OK {
				over++
			}
			if attempt == 0 {
				firsts++
			} else {
				again++
			}
		}
		var retry func(client string, gateway, attempt int)
		retry = func(client string, gateway, attempt int) {
			w.At(nil, time.Second, func() {
				if cluster.Admit(gateway, client, uint32(attempt)) != nil {
					return
				}
				call(attempt)
				retry(client, gateway, attempt+1)
			})
		}
		w.even(perMinute, length, func() {
			client, gateway := fmt.Sprint("client", w.Rand.IntN(3)), w.Rand.IntN(3)
			cluster.Acquire(&authority.Ask{
				Operation: &logv1.Acquire{
					Client: client, Charges: []*logv1.Charge{authority.Charge(deployment, "", provider.Requests, 1)},
				},
				Done: func(a authority.Answer) {
					if a.Granted && cluster.Admit(gateway, client, 0) == nil {
						call(0)
						retry(client, gateway, 1)
					}
				},
			})
		})
		w.until(length)
		headroom := perMinute * (1 - target/10_000.0)
		near(t, "first attempts a minute", float64(firsts)/length.Minutes(), perMinute-headroom, 5)
		if got := float64(again) / length.Minutes(); got < 0.9*headroom || got > 1.01*headroom {
			t.Errorf("%v retries a minute, want %v", got, headroom)
		}
		if over != 0 {
			t.Errorf("the provider refused %d", over)
		}
	})
}
