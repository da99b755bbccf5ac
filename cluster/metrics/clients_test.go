package metrics_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/metrics"
	"github.com/quorlease/quorlease/cluster/queue"
	"github.com/quorlease/quorlease/cluster/warn"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/tally"
)

// register hands a set to a registry. Not parallel: the libraries' sinks are global.
func register(t *testing.T, set *metrics.Set) *prometheus.Registry {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := set.Register(registry); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(set.Unregister)
	return registry
}

// TestOffenders: names that clients chose are there once each, can be printed, and
// are as many as the reader says.
func TestOffenders(t *testing.T) {
	t.Run("S1-48_G10", func(t *testing.T) {
		long := strings.Repeat("x", 200)
		set := metrics.New()
		set.Offenders(func() []warn.Offender {
			return []warn.Offender{
				{Client: "batch-scorer", Fraction: 920_000, Over: true},
				{Client: "a\"b\u202e{}", Fraction: 100_100},
				{Client: long + "1", Fraction: 100_000},
				{Client: long + "2", Fraction: 90_000},
				{Client: "watched", Fraction: 80_000, Over: true, Silent: true},
			}
		})
		registry := register(t, set)
		const name = "quorlease_retry_fraction_top"
		for _, c := range []struct {
			labels map[string]string
			want   float64
		}{
			{map[string]string{"client": "batch-scorer", "budget": "spent"}, 0.92},
			{map[string]string{"client": `a"b\u{202e}{}`, "budget": "left"}, 0.1001},
			{map[string]string{"client": strings.Repeat("x", 125) + "…", "budget": "left"}, 0.1},
			{map[string]string{"client": "watched", "budget": "shadow"}, 0.08},
			{map[string]string{"client": "healthy"}, -1},
		} {
			if got := value(t, registry, name, c.labels); got != c.want {
				t.Errorf("%v is %v, want %v", c.labels, got, c.want)
			}
		}
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() == name && len(f.GetMetric()) != 4 {
				t.Errorf("%d series, want four", len(f.GetMetric()))
			}
		}
	})
}

// TestAttempts: what went ahead and what providers throttled only grow, so that a rate
// over them is of the time that it looks at: it is nothing once the source has stopped.
func TestAttempts(t *testing.T) {
	t.Run("S1-10_S1-11", func(t *testing.T) {
		set := metrics.New()
		registry := register(t, set)
		figures := func() (all, throttled float64) {
			return value(t, registry, "quorlease_provider_attempts_total", nil),
				value(t, registry, "quorlease_provider_throttled_total", nil)
		}
		granted := &logv1.AcquireResult{Granted: true}
		for range 10 {
			set.Decided(&logv1.Acquire{}, granted, time.Millisecond)
		}
		set.Decided(&logv1.Acquire{}, &logv1.AcquireResult{Granted: true, Repeated: true}, time.Millisecond)
		set.Decided(&logv1.Acquire{}, &logv1.AcquireResult{}, time.Millisecond)
		set.Tried(tally.Count{Total: 90, Retries: 80, Throttled: 85})
		all, throttled := figures()
		if all != 100 || throttled != 85 {
			t.Errorf("%v went ahead and %v were throttled, want 100 and 85", all, throttled)
		}
		// The source stops; others go on.
		set.Decided(&logv1.Acquire{}, granted, time.Millisecond)
		if more, same := figures(); more-all != 1 || same != throttled {
			t.Errorf("%v more and %v more, want one and none", more-all, same-throttled)
		}
	})
}

// TestQueueFigures: what waits is seen before any provider refuses.
func TestQueueFigures(t *testing.T) {
	t.Run("S2-29", func(t *testing.T) {
		set := metrics.New()
		set.Queues(func() []queue.Depth {
			return []queue.Depth{{
				Limit: "gpt", Class: "batch", Waiting: 7, Oldest: 90 * time.Second,
				Tokens: []queue.Cost{{Dimension: "input_tokens", Tokens: 17_500}, {Dimension: "requests", Tokens: 7}},
			}}
		})
		registry := register(t, set)
		of := map[string]string{"limit": "gpt", "class": "batch"}
		input := map[string]string{"limit": "gpt", "class": "batch", "dimension": "input_tokens"}
		for name, want := range map[string]float64{"depth": 7, "oldest_seconds": 90} {
			if got := value(t, registry, "quorlease_queue_"+name, of); got != want {
				t.Errorf("%s is %v, want %v", name, got, want)
			}
		}
		if got := value(t, registry, "quorlease_queue_tokens", input); got != 17_500 {
			t.Errorf("they ask for %v, want 17500", got)
		}
	})
}

// TestLevels: what is left of a limit is shown where there is one bucket of it, and
// nothing where clients choose how many there are.
func TestLevels(t *testing.T) {
	machine := fsm.New()
	dimension := []*logv1.Dimension{{
		Name: "requests", Amount: 600, Interval: int64(time.Minute), Burst: 20, MaxDebt: 20, MaxOpen: 20,
	}}
	limits := []*logv1.Limit{
		{Name: "demo", Lease: int64(5 * time.Second), Target: 10_000, Dimensions: dimension, MaxKeys: 1},
		{Name: "keyed", Keyed: true, Lease: int64(5 * time.Second), Target: 10_000, Dimensions: dimension, MaxKeys: 10},
	}
	operation := &logv1.Operation{Kind: &logv1.Operation_ApplyLimits{ApplyLimits: &logv1.ApplyLimits{Limits: limits}}}
	results, _ := machine.Apply(1, &logv1.Entry{Stamp: 1, Operations: []*logv1.Operation{operation}})
	if refusal := results[0].GetRefusal(); refusal != nil {
		t.Fatal(refusal)
	}
	set := metrics.New()
	set.Levels(func(read func(*fsm.Machine, bucket.Instant)) { read(machine, machine.Now()) })
	registry := register(t, set)
	for name, want := range map[string]float64{"quorlease_limit_level_tokens": 20, "quorlease_limit_burst_tokens": 20} {
		if got := value(t, registry, name, map[string]string{"limit": "demo", "dimension": "requests"}); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
		if got := value(t, registry, name, map[string]string{"limit": "keyed"}); got != -1 {
			t.Errorf("%s of a limit with keys is %v", name, got)
		}
	}
}

// TestG10OffendersAreFew however many clients retry: the worst, those over their budget
// first.
func TestG10OffendersAreFew(t *testing.T) {
	t.Run("G10", func(t *testing.T) {
		machine, suspects := fsm.New(), warn.NewSuspects()
		report := &logv1.ReportRetries{Node: "a.00000000", Boot: 1}
		for i := range int64(120) {
			name := fmt.Sprintf("client-%03d", i)
			report.Slices = append(report.Slices, &logv1.ClientSlice{Client: name, Slice: 1, Total: 1000, Retries: 100 + i})
			suspects.Add(name)
		}
		budget := &logv1.RetryBudget{
			Name: "default", Client: "*", MaxRetries: 3, MaxFraction: 2180, MinRequests: 50,
			Window: int64(5 * time.Minute), RetryAfter: int64(time.Minute),
		}
		results, _ := machine.Apply(1, &logv1.Entry{Stamp: int64(time.Second), Operations: []*logv1.Operation{
			{Kind: &logv1.Operation_ApplyLimits{ApplyLimits: &logv1.ApplyLimits{RetryBudgets: []*logv1.RetryBudget{budget}}}},
			{Kind: &logv1.Operation_ReportRetries{ReportRetries: report}},
		}})
		for _, result := range results {
			if refusal := result.GetRefusal(); refusal != nil {
				t.Fatal(refusal)
			}
		}
		_, tops := warn.NewRounds(suspects).Look(time.Second, func(read func(*fsm.Machine, bucket.Instant)) {
			read(machine, machine.Now())
		})
		if len(tops.Offenders) != warn.OffendersMax || tops.Over != 1 {
			t.Fatalf("%d offenders and %d over, want %d and one", len(tops.Offenders), tops.Over, warn.OffendersMax)
		}
		if len(tops.Worst(0)) != 0 || len(tops.Worst(10)) != 10 || len(tops.Worst(1000)) != warn.OffendersMax {
			t.Errorf("%d, %d and %d", len(tops.Worst(0)), len(tops.Worst(10)), len(tops.Worst(1000)))
		}
		for i, o := range tops.Offenders {
			want := warn.Offender{Client: fmt.Sprintf("client-%03d", 119-i), Fraction: int64(219-i) * 1000, Over: i == 0}
			if o != want {
				t.Errorf("%d: %+v, want %+v", i, o, want)
			}
		}
	})
}

// TestSources: each place where an acquire is decided has its own series, of limits that
// are known, by the class that the limit has.
func TestSources(t *testing.T) {
	set := metrics.New()
	set.Configure([]*logv1.Limit{{Name: "gpt", Classes: []*logv1.Class{{Name: "live"}, {Name: "batch"}}}})
	registry := register(t, set)
	decide := func(limit, class string, escrow bool, times int) {
		op := &logv1.Acquire{Class: class, Charges: []*logv1.Charge{{Limit: limit}}}
		for range times {
			set.Decided(op, &logv1.AcquireResult{Granted: true, Escrow: escrow}, time.Millisecond)
		}
	}
	decide("gpt", "batch", true, 3)
	decide("gpt", "batch", false, 2)
	decide("gpt", "none", true, 4)
	decide("unknown", "batch", true, 5)
	for _, c := range []struct {
		limit, class, source string
		want                 float64
	}{
		{"gpt", "batch", "escrow", 3}, {"gpt", "batch", "consensus", 2}, {"gpt", "", "escrow", 4}, {"", "", "escrow", 5},
	} {
		labels := map[string]string{"limit": c.limit, "class": c.class, "source": c.source, "decision": "granted"}
		if got := value(t, registry, "quorlease_decisions_total", labels); got != c.want {
			t.Errorf("%v: %v, want %v", labels, got, c.want)
		}
	}
	set.Configure(nil)
	gone := map[string]string{"limit": "gpt", "source": "escrow"}
	if got := value(t, registry, "quorlease_decisions_total", gone); got != -1 {
		t.Errorf("%v of a limit that has gone", got)
	}
}
