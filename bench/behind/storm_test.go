package behind_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorlease/quorlease/bench/upstream"
	"github.com/quorlease/quorlease/client/gateway"
)

const (
	// stormCalls of stormWorkers are a program that was made by hand.
	stormCalls   = 1500
	stormWorkers = 33
	// reachesMax is how many of them may reach the provider.
	reachesMax = 200
)

// looping is such a program: each worker sends the next call gap after it was told what
// became of the last one, whatever that was.
type looping struct {
	workers, calls int
	gap            time.Duration
	body           func(worker, call int) string
}

// at makes all the calls, and returns what was told.
func (l looping) at(t *testing.T, p *program) []reply {
	t.Helper()
	var next atomic.Int64
	var joined sync.WaitGroup
	told := make([][]reply, l.workers)
	for worker := range l.workers {
		joined.Go(func() {
			for {
				call := int(next.Add(1)) - 1
				if call >= l.calls {
					return
				}
				got, err := p.call(t.Context(), l.body(worker, call))
				if err != nil {
					t.Error(err)
					return
				}
				told[worker] = append(told[worker], got)
				if l.gap > 0 {
					pause(t.Context(), l.gap)
				}
			}
		})
	}
	joined.Wait()
	return slices.Concat(told...)
}

// same is a worker that repeats its call, and other one whose calls all differ.
func same(worker, _ int) string { return prompt(fmt.Sprint("work ", worker), "") }

func other(worker, call int) string { return prompt(fmt.Sprint("work ", worker, " at ", call), "") }

// always is a provider that refuses everything, without a hint.
func always() []upstream.Fault { return []upstream.Fault{refuse(upstream.Requests, 0, 0)} }

// TestAStormThatSaysNothing: 1,500 calls of 33 workers that set no header of retries, at a
// provider that always says 429.
func TestAStormThatSaysNothing(t *testing.T) {
	authority := ask(t)
	for _, row := range []struct {
		name, deployment string
		body             func(worker, call int) string
		change           func(*gateway.Config)
		// budget: it is the retry budget alone that stops it.
		budget bool
	}{
		{"S1-23_S1-24_S1-25_the_budget_alone", "deaf-same", same, unbroken, true},
		{"S1-14_another_body_each_time", "deaf-other", other, unbroken, true},
		{"S1-02_as_a_gateway_is", "heard-usual", same, nil, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := stand(t, setting{
				deployment: row.deployment, provider: upstream.Config{API: upstream.OpenAI}, faults: always(),
				authority: authority, change: row.change,
			})
			began := time.Now()
			l := looping{workers: stormWorkers, calls: stormCalls, body: row.body}
			told := l.at(t, newProgram(t, p, upstream.OpenAI, row.deployment))
			refused := budgets(t, told)
			t.Logf("%d of %d calls reached the provider, %d were refused for the budget, in %s",
				p.reached(), len(told), refused, time.Since(began))
			if n := p.reached(); n < 1 || n > reachesMax || len(told) != stormCalls {
				t.Errorf("%d of %d calls reached the provider, want at most %d", n, len(told), reachesMax)
			}
			if row.budget && refused < stormCalls/2 {
				t.Errorf("%d were refused for the budget: %+v", refused, p.Stats())
			}
			if took := p.lasted(); !row.budget && took > loopMax {
				t.Errorf("the provider was asked for %s after the first refusal", took)
			}
		})
	}
}

// loopMax is for how long a provider that refuses is asked (S1-02).
const loopMax = 1500 * time.Millisecond

// lasted is how long after its first answer the provider was asked for the last time.
func (p *place) lasted() time.Duration {
	calls := p.upstream.Ledger().Calls
	first, last := calls[0].Ended, time.Duration(0)
	for _, call := range calls {
		first, last = min(first, call.Ended), max(last, call.Arrived)
	}
	return (last - first) / speed
}

// budgets counts what was refused for a retry budget. These alone say so, and say the rest of
// it, too.
func budgets(t *testing.T, told []reply) (n int) {
	t.Helper()
	want := map[string]string{
		"Retry-After": "60", "Retry-After-Ms": "60000", "X-Should-Retry": "false", "X-Retry-Budget-Exceeded": "true",
	}
	for i := range told {
		got := &told[i]
		if got.code() != "retry_budget_exceeded" {
			if got.header.Get("X-Retry-Budget-Exceeded") != "" {
				t.Errorf("%d %s says that a budget is spent", got.status, got.body)
			}
			continue
		}
		n++
		for name, value := range want {
			if said := got.header.Get(name); got.status != http.StatusTooManyRequests || said != value {
				t.Fatalf("%d, %s is %q, want %q", got.status, name, said, value)
			}
		}
	}
	return n
}

// alone is how many calls of a program that only fails reach a provider through one gateway:
// of 51 more than a fifth are retries.
const alone = 51

// TestTwoGatewaysShareABudget: what a client does at one counts at the other.
func TestTwoGatewaysShareABudget(t *testing.T) {
	at := func(t *testing.T, deployment string, change func(*gateway.Config)) *place {
		t.Helper()
		return stand(t, setting{
			deployment: deployment, provider: upstream.Config{API: upstream.OpenAI}, faults: always(),
			authority: ask(t), change: func(c *gateway.Config) { unbroken(c); change(c) },
		})
	}
	t.Run("S1-31_one_after_the_other", func(t *testing.T) {
		as := func(*gateway.Config) {}
		first, second := at(t, "deaf-first", as), at(t, "deaf-second", as)
		looping{workers: 8, calls: 200, body: other}.at(t, newProgram(t, first, upstream.OpenAI, "both"))
		elsewhere := newProgram(t, second, upstream.OpenAI, "both")
		n := 0
		// The first of its calls that this gateway sees, or one soon after.
		retry := func() bool {
			n++
			got, err := elsewhere.call(t.Context(), prompt(fmt.Sprint("new work ", n), ""), "X-Retry-Attempt", "1")
			return err == nil && budgets(t, []reply{got}) == 1 || !pause(t.Context(), 200*time.Millisecond)
		}
		if !until(t.Context(), retry) || n > alone/2 {
			t.Errorf("retry %d at a second gateway was refused at last: %+v", n, second.Stats())
		}
		t.Logf("the second gateway refused retry %d, after %d calls through the first", n, first.reached())
		before := second.reached()
		somebody := newProgram(t, second, upstream.OpenAI, "somebody")
		got, err := somebody.call(t.Context(), prompt("other work", ""), "X-Retry-Attempt", "1")
		if second.reached() != before+1 {
			t.Errorf("somebody else's retry was not forwarded: %d %s, %v", got.status, got.body, err)
		}
	})
	for _, row := range []struct {
		name string
		// busy is how many calls make a gateway hold blocks, and count by itself.
		busy, most int
	}{
		// What one node has let through the others have not heard of for a moment.
		{"S1-31_both_at_once_asking_each_time", 1000, alone + 20},
		// What a gateway lets through without asking another one hears of with its next question.
		{"S1-31_both_at_once_with_blocks", 4, 2*alone + 8},
	} {
		t.Run(row.name, func(t *testing.T) {
			var joined sync.WaitGroup
			var places []*place
			name := fmt.Sprint("everywhere-", row.busy)
			for i := range 2 {
				p := at(t, fmt.Sprint("deaf-", row.busy, "-", i), func(c *gateway.Config) { c.Charges.Busy = row.busy })
				places = append(places, p)
				program := newProgram(t, p, upstream.OpenAI, name)
				joined.Go(func() { looping{workers: 4, calls: 100, gap: 50 * time.Millisecond, body: other}.at(t, program) })
			}
			joined.Wait()
			left, right := places[0].reached(), places[1].reached()
			t.Logf("%d and %d of 200 calls reached the provider", left, right)
			if left+right > row.most || left+right < alone/2 {
				t.Errorf("%d and %d of 200 calls reached the provider, want at most %d", left, right, row.most)
			}
		})
	}
}

// TestTheStartOfAFleetIsSpread: 200 programs that one clock starts.
func TestTheStartOfAFleetIsSpread(t *testing.T) {
	t.Run("S3-47_S3-17_no_more_than_the_burst_and_a_second", func(t *testing.T) {
		const fleet, burst, rate = 200, 25, 50
		clock := upstream.Speed(1)
		p := stand(t, setting{
			deployment: "spread", provider: upstream.Config{API: upstream.OpenAI, Clock: clock}, authority: ask(t),
		})
		programs := newProgram(t, p, upstream.OpenAI, "")
		ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
		defer cancel()
		start := make(chan struct{})
		var joined sync.WaitGroup
		var served atomic.Int64
		for i := range fleet {
			joined.Go(func() {
				<-start
				got, err := programs.call(ctx, prompt("wake up", ""), "X-Client-Id", fmt.Sprint("fleet-", i))
				if err != nil || got.status != http.StatusOK {
					t.Errorf("program %d: %d %s, %v", i, got.status, got.body, err)
					return
				}
				served.Add(1)
			})
		}
		began := clock.Now()
		close(start)
		joined.Wait()
		first, last := 0, time.Duration(0)
		for _, call := range p.upstream.Ledger().Calls {
			if call.Arrived-began <= time.Second {
				first++
			}
			last = max(last, call.Arrived-began)
		}
		t.Logf("%d in the first second, the last after %s", first, last)
		if first > burst+rate {
			t.Errorf("%d reached the provider in the first second, want at most %d", first, burst+rate)
		}
		if served.Load() != fleet || p.reached() != fleet {
			t.Errorf("%d of %d were served, and %d reached the provider", served.Load(), fleet, p.reached())
		}
	})
}
