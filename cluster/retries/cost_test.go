package retries_test

import (
	"slices"
	"testing"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/retries"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// busy is a desk whose client has a full window of three nodes.
func busy(t testing.TB) (*office, retries.Ask) {
	t.Helper()
	o := newOffice(t, 3, nil)
	for second := range int64(300) {
		o.now = time.Duration(second) * time.Second
		for _, node := range []string{"a.00000000", "b.00000000", "c.00000000"} {
			o.apply(&logv1.Operation{Kind: &logv1.Operation_ReportRetries{ReportRetries: &logv1.ReportRetries{
				Node: node, Boot: 1, Slices: []*logv1.ClientSlice{{Client: "c", Slice: second, Total: 50, Retries: 4}},
			}}})
		}
	}
	return o, retries.Ask{At: o.now, Now: bucket.Instant(o.now), Acquire: work("c", "gpt"), Attempt: 1, Nodes: 3}
}

// decide is one decision as a node makes it, to the end.
func decide(o *office, ask retries.Ask, result *logv1.AcquireResult) {
	o.desk.Answered(ask.At, ask.Acquire, o.desk.Decide(o.m, ask), result, false)
}

// TestDecisionsCost: microseconds, and no memory.
func TestDecisionsCost(t *testing.T) {
	// Not parallel: it measures.
	t.Run("S1-32", func(t *testing.T) {
		o, ask := busy(t)
		result := granted()
		decide(o, ask, result)
		if n := testing.AllocsPerRun(200, func() { decide(o, ask, result) }); n != 0 {
			t.Errorf("%v allocations a decision, want none", n)
		}
		// Whoever is refused asks the most: an answer, and nothing besides.
		ask.Attempt = 0
		o.apply(&logv1.Operation{Kind: &logv1.Operation_ReportRetries{ReportRetries: &logv1.ReportRetries{
			Node: "a.00000000", Boot: 1, Slices: []*logv1.ClientSlice{
				{Client: "c", Slice: int64(ask.Now) / int64(time.Second), Total: 1e6, Retries: 1e6},
			},
		}}})
		refused := func() {
			if r := o.desk.Decide(o.m, ask); r.Denial == nil {
				t.Fatal("over its budget, and not refused")
			}
		}
		refused()
		if n := testing.AllocsPerRun(200, refused); n > 1 {
			t.Errorf("%v allocations a refusal, want the denial", n)
		}
		if !measures {
			return
		}
		// The best of some rounds: what else this machine does is not the decision's.
		best := [2]time.Duration{time.Hour, time.Hour}
		for round := 0; round < 60 && (best[0] > 5*time.Microsecond || best[1] > 10*time.Microsecond); round++ {
			took := make([]time.Duration, 0, 500)
			// So many retries are within the part of this node.
			o, ask := busy(t)
			for range cap(took) {
				began := time.Now()
				decide(o, ask, result)
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			best[0] = min(best[0], took[len(took)/2])
			best[1] = min(best[1], took[len(took)*99/100])
		}
		t.Logf("p50 %v, p99 %v", best[0], best[1])
		if best[0] > 5*time.Microsecond || best[1] > 10*time.Microsecond {
			t.Errorf("p50 %v, p99 %v; want below 5 µs and 10 µs", best[0], best[1])
		}
	})
}

func BenchmarkDesk(b *testing.B) {
	o, ask := busy(b)
	// First attempts are always in budget, however many there are.
	ask.Attempt = 0
	result := granted()
	b.ReportAllocs()
	for b.Loop() {
		decide(o, ask, result)
	}
}
