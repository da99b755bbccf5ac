package overview_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/events"
	"github.com/quorlease/quorlease/cluster/overview"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/tally"
)

var noon = time.Date(2026, 10, 22, 12, 0, 0, 0, time.UTC)

// book is one with the limits gpt, keyed, and free.
func book() *overview.Book {
	b := overview.New(noon)
	b.Configure([]*logv1.Limit{
		{Name: "free", Dimensions: []*logv1.Dimension{{Name: "requests"}}},
		{Name: "gpt", Keyed: true, Dimensions: []*logv1.Dimension{{Name: "requests"}, {Name: "tokens"}}},
	})
	return b
}

func work(limit, key string, tokens int64) *logv1.Acquire {
	return &logv1.Acquire{Client: "c", Charges: []*logv1.Charge{
		{Limit: limit, Key: key, Dimension: "requests", Amount: 1},
		{Limit: limit, Key: key, Dimension: "tokens", Amount: tokens},
	}}
}

func granted(waited time.Duration) *logv1.AcquireResult {
	r := &logv1.AcquireResult{Granted: true}
	if waited > 0 {
		r.Queue = &logv1.QueueStatus{Waited: int64(waited)}
	}
	return r
}

func denied(limit, key string) *logv1.AcquireResult {
	return &logv1.AcquireResult{Denials: []*logv1.Denial{
		{Limit: limit, Key: key, Dimension: "requests", Reason: logv1.Reason_REASON_RATE},
		{Limit: limit, Key: key, Dimension: "tokens", Reason: logv1.Reason_REASON_RATE},
	}}
}

// TestTheLastMinute: what was answered, what was granted, and the key under most
// pressure. After a minute it is nothing.
func TestTheLastMinute(t *testing.T) {
	t.Parallel()
	b := book()
	for range 30 {
		b.Decided(noon, work("gpt", "busy", 100), granted(0), time.Millisecond)
	}
	b.Decided(noon, work("gpt", "busy", 100), &logv1.AcquireResult{Granted: true, Repeated: true}, time.Millisecond)
	at := noon.Add(20 * time.Second)
	for range 3 {
		b.Decided(at, work("gpt", "hot", 100), denied("gpt", "hot"), time.Millisecond)
	}
	b.Decided(at, work("gpt", "hot", 1), granted(time.Second), time.Second)
	got := b.View(noon.Add(59 * time.Second)).Limits[1]
	if got.Granted != 31 || got.Denied != 3 || got.Waited != 1 || got.Tokens[0] != 31 || got.Tokens[1] != 3001 {
		t.Errorf("%+v, want 31 granted with 3001 tokens, 3 denied, 1 waited", got)
	}
	if got.Key != "hot" || got.Worst != "hot" {
		t.Errorf("key %q, worst %q, want the one that was denied", got.Key, got.Worst)
	}
	got = b.View(noon.Add(79 * time.Second)).Limits[1]
	if got.Granted != 1 || got.Tokens[1] != 1 {
		t.Errorf("%+v, want what is younger than a minute", got)
	}
	got = b.View(noon.Add(10 * time.Minute)).Limits[1]
	if got.Granted+got.Denied+got.Waited != 0 || got.Key != "" || got.Worst != "" {
		t.Errorf("%+v, want nothing of a key that is quiet for minutes", got)
	}
}

// TestNeverLimited: the time of decisions on limits that were not limited, and of
// those alone.
func TestNeverLimited(t *testing.T) {
	t.Parallel()
	t.Run("S2-31", func(t *testing.T) {
		t.Parallel()
		b := book()
		if v := b.View(noon); v.HasP95 {
			t.Errorf("%v before anything was decided", v.P95)
		}
		free := &logv1.Acquire{Charges: []*logv1.Charge{{Limit: "free", Dimension: "requests", Amount: 1}}}
		for i := range 100 {
			took := time.Millisecond
			if i >= 96 {
				took = time.Second
			}
			b.Decided(noon, free, granted(0), took)
			b.Decided(noon, work("gpt", "k", 1), granted(0), 5*time.Second)
		}
		b.Decided(noon, work("gpt", "k", 1), denied("gpt", "k"), time.Millisecond)
		v := b.View(noon.Add(time.Second))
		if !v.HasP95 || v.P95 < time.Millisecond || v.P95 > 1250*time.Microsecond {
			t.Errorf("p95 %v, want a millisecond and at most a quarter more", v.P95)
		}
		// Who waits is limited too, and whoever is not any more counts again.
		b.Decided(noon.Add(2*time.Second), free, granted(time.Second), time.Second)
		if v := b.View(noon.Add(3 * time.Second)); v.HasP95 {
			t.Errorf("%v although both were limited", v.P95)
		}
		late := noon.Add(2 * time.Minute)
		b.Decided(late, work("gpt", "k", 1), granted(0), time.Second)
		if v := b.View(late); v.P95 < time.Second || v.P95 > 1250*time.Millisecond {
			t.Errorf("p95 %v, want a second", v.P95)
		}
		// What is older than a minute is told no more.
		if v := b.View(late.Add(90 * time.Second)); v.HasP95 {
			t.Errorf("%v, and nothing was decided for a minute and a half", v.P95)
		}
	})
}

// TestTheHour: points of ten seconds, in order and nothing older than an hour, also
// when the clock jumps.
func TestTheHour(t *testing.T) {
	t.Parallel()
	b := book()
	for i := range 400 {
		at := noon.Add(time.Duration(i) * overview.Step)
		b.Decided(at, work("gpt", "k", 1), granted(0), time.Millisecond)
		b.Reported(at, at.Add(-overview.Step), "c", tally.Count{Total: 10, Retries: 4, Throttled: 3})
	}
	now := noon.Add(399 * overview.Step)
	hour := b.View(now).Hour
	if len(hour) != overview.Points {
		t.Fatalf("%d points, want %d", len(hour), overview.Points)
	}
	for i, p := range hour {
		want := overview.Point{
			Start: now.Add(time.Duration(i-overview.Points+1) * overview.Step).UnixMilli(), Granted: 1,
			OK: 7, Throttled: 3, Retries: 4,
		}
		if i == overview.Points-1 {
			want.OK, want.Throttled, want.Retries = 0, 0, 0
		}
		if p != want {
			t.Fatalf("point %d: %+v, want %+v", i, p, want)
		}
	}
	// What is older than the hour, or of a time to come, is left out.
	b.Reported(now, now.Add(-2*time.Hour), "c", tally.Count{Total: 1000})
	b.Reported(now, now.Add(time.Hour), "c", tally.Count{Total: 1000})
	if sum := total(b.View(now).Hour); sum.OK != 7*359 {
		t.Errorf("%d answers, want %d", sum.OK, 7*359)
	}
	back := b.View(now.Add(-3 * time.Hour)).Hour
	if sum := total(back); sum.Granted != 0 {
		t.Errorf("%d granted in an hour that is three earlier", sum.Granted)
	}
	if hour := b.View(now.Add(5 * time.Hour)).Hour; len(hour) != 1 || total(hour).Granted != 0 {
		t.Errorf("%d points five hours later, want the empty one of now", len(hour))
	}
}

func total(points []overview.Point) (sum overview.Point) {
	for _, p := range points {
		sum.Granted += p.Granted
		sum.OK += p.OK
	}
	return sum
}

// TestReports: reports are cumulative and come again; each answer counts once.
func TestReports(t *testing.T) {
	t.Parallel()
	m, b, index := fsm.New(), book(), uint64(0)
	apply := func(slices ...*logv1.ClientSlice) {
		index++
		report := &logv1.Operation{Kind: &logv1.Operation_ReportRetries{ReportRetries: &logv1.ReportRetries{
			Node: "a.00000000", Boot: 1, Slices: slices,
		}}}
		// The same report twice in one entry, as after a repetition.
		e := &logv1.Entry{Stamp: int64(time.Minute), Operations: []*logv1.Operation{report, report}}
		reports := overview.Look(m, e)
		m.Apply(index, e)
		reports.Compare(m)
		b.Applied(noon, noon, reports)
	}
	apply(&logv1.ClientSlice{Client: "c", Slice: 60, Total: 10, Retries: 2, Throttled: 4})
	apply(&logv1.ClientSlice{Client: "c", Slice: 60, Total: 15, Retries: 3, Throttled: 5})
	apply(&logv1.ClientSlice{Client: "c", Slice: 60, Total: 10, Retries: 2, Throttled: 4})
	apply(&logv1.ClientSlice{Client: "old", Slice: 1 << 40, Total: 10})
	v := b.View(noon)
	if p := v.Hour[0]; p.OK != 10 || p.Throttled != 5 || p.Retries != 3 {
		t.Errorf("%+v, want 10 answers, 5 throttled, 3 retries", p)
	}
	if len(v.Clients) != 1 || v.Clients[0] != "c" {
		t.Errorf("clients %v, want c", v.Clients)
	}
	if overview.Look(m, &logv1.Entry{}) != nil {
		t.Error("an entry without reports has some")
	}
}

// TestGrantsTakeNoMemory: nothing is allocated for an answer, and hardly anything for
// names that are new.
func TestGrantsTakeNoMemory(t *testing.T) {
	b, ops, result := book(), make([]*logv1.Acquire, 1000), granted(0)
	for i := range ops {
		ops[i] = work("gpt", fmt.Sprintf("key-%04d", i), 5)
	}
	i := 0
	decide := func() {
		b.Decided(noon, ops[i%len(ops)], result, time.Millisecond)
		i++
	}
	for range ops {
		decide()
	}
	if n := testing.AllocsPerRun(2000, decide); n != 0 {
		t.Errorf("%v allocations a grant, want none", n)
	}
}

// TestG10NamesDoNotGrowIt: a hundred thousand clients that are all over their budget,
// with names as long as they may be, and as many keys.
func TestG10NamesDoNotGrowIt(t *testing.T) {
	b, before := book(), heap()
	long := strings.Repeat("x", 240)
	for i := range 100_000 {
		name := fmt.Sprintf("%s%06d", long, i)
		b.Reported(noon, noon, name, tally.Count{Total: 100, Retries: 50, Throttled: 50, Denied: 1})
		b.Decided(noon, work("gpt", name, 1), denied("gpt", name), time.Millisecond)
		b.Happened(events.Event{
			Kind: events.ClientOverBudget, Severity: events.Warning, Client: name, Text: name + name, Time: noon,
		}, name)
	}
	if grown := heap() - before; grown > 8<<20 {
		t.Errorf("%d bytes for a hundred thousand names, want at most 8 MiB", grown)
	}
	v := b.View(noon)
	if len(v.Clients) > 1000 || len(v.Firing) != overview.ShownMax {
		t.Errorf("%d clients and %d alerts are shown", len(v.Clients), len(v.Firing))
	}
	if v.RetryAlerts != 100_000 || v.FiringTotal != 100_000 {
		t.Errorf("%d of %d alerts, want all hundred thousand counted", v.RetryAlerts, v.FiringTotal)
	}
	runtime.KeepAlive(b)
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkDecided is what the book adds to an answer.
func BenchmarkDecided(b *testing.B) {
	one, op, result := book(), work("gpt", "key", 5), granted(0)
	b.ReportAllocs()
	for b.Loop() {
		one.Decided(noon, op, result, time.Millisecond)
	}
}
