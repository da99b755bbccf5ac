package retries_test

import (
	"testing"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/retries"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/tally"
)

// office is one node of three with a real state machine, in time that the test
// moves.
type office struct {
	t    testing.TB
	m    *fsm.Machine
	desk *retries.Desk
	now  time.Duration
	// nodes is how many serve.
	nodes int
}

func budgetOf(change func(*logv1.RetryBudget)) *logv1.RetryBudget {
	b := &logv1.RetryBudget{
		Name: "default", Client: "*", MaxRetries: 3, MaxFraction: 2000, MinRequests: 50,
		Window: int64(5 * time.Minute), RetryAfter: int64(time.Minute),
	}
	if change != nil {
		change(b)
	}
	return b
}

func newOffice(t testing.TB, nodes int, change func(*logv1.RetryBudget)) *office {
	t.Helper()
	o := &office{t: t, m: fsm.New(), desk: retries.NewDesk("a.00000000"), nodes: nodes}
	o.apply(&logv1.Operation{Kind: &logv1.Operation_ApplyLimits{
		ApplyLimits: &logv1.ApplyLimits{RetryBudgets: []*logv1.RetryBudget{budgetOf(change)}},
	}})
	return o
}

func (o *office) apply(op *logv1.Operation) {
	o.t.Helper()
	results, _ := o.m.Apply(o.m.Index()+1, &logv1.Entry{Stamp: int64(o.now), Operations: []*logv1.Operation{op}})
	if refusal := results[0].GetRefusal(); refusal != nil {
		o.t.Fatal(refusal)
	}
	if report := op.GetReportRetries(); report != nil {
		o.desk.Applied(o.m, o.now, report)
	}
}

// report reports what the desk has counted, and applies it.
func (o *office) report() {
	o.t.Helper()
	if r := o.desk.Counter.Report(o.now); r != nil {
		o.apply(&logv1.Operation{Kind: &logv1.Operation_ReportRetries{ReportRetries: r}})
	}
}

func work(client string, limits ...string) *logv1.Acquire {
	a := &logv1.Acquire{Client: client}
	for _, limit := range limits {
		a.Charges = append(a.Charges, &logv1.Charge{Limit: limit, Dimension: "requests", Amount: 1})
	}
	return a
}

// ask decides, and lets result be what becomes of it otherwise.
func (o *office) ask(a *logv1.Acquire, attempt uint32, otherwise *logv1.AcquireResult) retries.Ruling {
	o.t.Helper()
	r := o.desk.Decide(o.m, retries.Ask{
		At: o.now, Now: bucket.Instant(o.now), Acquire: a, Attempt: attempt, Nodes: o.nodes,
	})
	result := otherwise
	if r.Denial != nil {
		result = &logv1.AcquireResult{Denials: []*logv1.Denial{r.Denial}}
	}
	if left := o.desk.Answered(o.now, a, r, result, false); left != (tally.Count{}) {
		o.desk.Note(o.m, o.now, bucket.Instant(o.now), a.GetClient(), retries.Tried{Count: left})
	}
	return r
}

func granted() *logv1.AcquireResult { return &logv1.AcquireResult{Granted: true} }

func denied(limit string, wait time.Duration) *logv1.AcquireResult {
	return &logv1.AcquireResult{Denials: []*logv1.Denial{{
		Reason: logv1.Reason_REASON_RATE, Limit: limit, RetryAfter: int64(wait),
	}}}
}

// stat is what the replica knows of a client after a report.
func (o *office) stat(client string) fsm.ClientStat {
	o.t.Helper()
	o.report()
	return o.m.Client(bucket.Instant(o.now), client)
}

func TestModes(t *testing.T) {
	t.Parallel()
	// storm is fifty retries and then two more.
	storm := func(o *office) (last retries.Ruling) {
		for range 51 {
			o.ask(work("c", "gpt"), 1, granted())
			o.report()
		}
		return o.ask(work("c", "gpt"), 0, granted())
	}
	mode := func(m logv1.Mode) func(*logv1.RetryBudget) {
		return func(b *logv1.RetryBudget) { b.Mode = m }
	}
	t.Run("S1-47_enforce_refuses", func(t *testing.T) {
		t.Parallel()
		o := newOffice(t, 1, nil)
		r := storm(o)
		if r.Denial.GetReason() != logv1.Reason_REASON_RETRY_BUDGET || r.Warning != nil {
			t.Errorf("%+v, want a denial", r)
		}
		if got := o.stat("c").Count; got.Total != 51 || got.Retries != 51 || got.Denied != 1 {
			t.Errorf("%+v, want 51 retries and a denial", got)
		}
	})
	for _, m := range []logv1.Mode{logv1.Mode_MODE_SHADOW, logv1.Mode_MODE_WARN} {
		t.Run("S1-47_"+m.String()+"_admits_and_says_so", func(t *testing.T) {
			t.Parallel()
			o := newOffice(t, 1, mode(m))
			r := storm(o)
			if r.Denial != nil || r.Warning.GetReason() != logv1.Reason_REASON_RETRY_BUDGET || r.Warning.GetFreesIn() <= 0 {
				t.Errorf("%+v, want a warning", r)
			}
			r = o.ask(work("c", "gpt"), 4, granted())
			if r.Denial != nil || r.Warning.GetReason() != logv1.Reason_REASON_ATTEMPTS {
				t.Errorf("%+v, want a warning of attempts", r)
			}
			if got := o.stat("c"); got.Count.Total != 53 || got.Count.Denied != 0 || !got.Over {
				t.Errorf("%+v, want 53 requests, over", got)
			}
		})
	}
	t.Run("S1-47_shadow_does_not_count_parts", func(t *testing.T) {
		t.Parallel()
		o := newOffice(t, 3, mode(logv1.Mode_MODE_SHADOW))
		for i := range 50 {
			// Of 51 this node may admit 17 by itself, if it enforced.
			if r := o.ask(work("c", "gpt"), 1, granted()); r.Denial != nil || r.Warning != nil {
				t.Fatalf("retry %d: %+v, want admitted", i, r)
			}
		}
	})
	t.Run("S1-47_off_neither_decides_nor_counts", func(t *testing.T) {
		t.Parallel()
		o := newOffice(t, 1, mode(logv1.Mode_MODE_OFF))
		if r := storm(o); r.Denial != nil || r.Warning != nil || r.Budget != nil {
			t.Errorf("%+v, want nothing", r)
		}
		if clients, slots := o.desk.Counter.Kept(); clients != 0 || slots != 0 || o.m.KnowsClient("c") {
			t.Errorf("%d clients and %d slots are kept", clients, slots)
		}
	})
}

func TestScopeAndFloor(t *testing.T) {
	t.Parallel()
	t.Run("S1-18_the_scope_retries_leaves_first_attempts_alone", func(t *testing.T) {
		t.Parallel()
		o := newOffice(t, 1, func(b *logv1.RetryBudget) { b.Scope = logv1.Scope_SCOPE_RETRIES })
		for range 60 {
			o.ask(work("c", "gpt"), 1, granted())
			o.report()
		}
		if r := o.ask(work("c", "gpt"), 1, granted()); r.Denial == nil {
			t.Error("a retry over the budget is admitted")
		}
		if r := o.ask(work("c", "gpt"), 0, granted()); r.Denial != nil {
			t.Errorf("a first attempt: %v", r.Denial)
		}
	})
	t.Run("A17_the_floor_of_the_fleet", func(t *testing.T) {
		t.Parallel()
		// 0.3 in a second of a window of 300 s.
		o := newOffice(t, 1, func(b *logv1.RetryBudget) {
			b.MinRequests, b.MinRetries, b.MinRetriesInterval = 0, 3, int64(10*time.Second)
		})
		admitted := 0
		for range 200 {
			if o.ask(work("c", "gpt"), 1, granted()).Denial == nil {
				admitted++
			}
			o.report()
		}
		if admitted != 90 {
			t.Errorf("%d retries admitted, the floor is 90 in a window", admitted)
		}
	})
}

// TestTried: what clients did by permits that they held counts as if a node had
// admitted it.
func TestTried(t *testing.T) {
	t.Parallel()
	note := func(o *office, client string, tried retries.Tried) {
		o.desk.Note(o.m, o.now, bucket.Instant(o.now), client, tried)
	}
	t.Run("S1-31_permits_count", func(t *testing.T) {
		t.Parallel()
		o := newOffice(t, 1, nil)
		note(o, "c", retries.Tried{
			Count: tally.Count{Total: 100, Retries: 30, Throttled: 5}, Fault: tally.Fault{Text: "429", Times: 5},
		})
		if r := o.ask(work("c", "gpt"), 0, granted()); r.Denial == nil {
			t.Error("a client is admitted that its permits have put over its budget")
		}
		got := o.stat("c")
		want := tally.Count{Total: 100, Retries: 30, Throttled: 5, Denied: 1}
		if got.Count != want || !got.Over || got.Fault.Text != "429" {
			t.Errorf("%+v, want %+v", got, want)
		}
	})
	t.Run("S1-48_the_commonest_error", func(t *testing.T) {
		t.Parallel()
		o := newOffice(t, 1, nil)
		for i := range 100 {
			fault := tally.Fault{Text: "rare" + string(rune('a'+i%26)), Times: 1}
			if i%3 == 0 {
				fault = tally.Fault{Text: "timeout", Times: 1}
			}
			note(o, "c", retries.Tried{Count: tally.Count{Total: 1}, Fault: fault})
		}
		if got := o.stat("c").Fault; got.Text != "timeout" || got.Times < 34 {
			t.Errorf("%+v, want timeout", got)
		}
		// Two windows later something else is common.
		o.now += 11 * time.Minute
		note(o, "c", retries.Tried{Count: tally.Count{Total: 1}, Fault: tally.Fault{Text: "503", Times: 2}})
		if got := o.stat("c").Fault; got != (tally.Fault{Text: "503", Times: 2}) {
			t.Errorf("%+v, want 503", got)
		}
	})
	t.Run("without_a_budget_throttled_answers_count", func(t *testing.T) {
		t.Parallel()
		o := &office{t: t, m: fsm.New(), desk: retries.NewDesk("a.00000000"), nodes: 1}
		note(o, "c", retries.Tried{Count: tally.Count{Total: 3, Throttled: 2}})
		if got := o.stat("c"); got.Count != (tally.Count{Total: 3, Throttled: 2}) || got.Budget != nil {
			t.Errorf("%+v", got)
		}
	})
}
