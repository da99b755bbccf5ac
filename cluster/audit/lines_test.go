package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/effect"
)

// FuzzLine: a line is what the library makes of the same decision.
func FuzzLine(f *testing.F) {
	f.Add("batch-scorer", "team-a", int64(2500), uint8(2))
	f.Add("a\n{\"client\":\"b\"}\x1b[2J\xff", "<script>&\u2028\\", int64(-1), uint8(40))
	f.Fuzz(func(t *testing.T, client, key string, n int64, times uint8) {
		class, attempt := key+client, uint32(times)
		op := &logv1.Acquire{LeaseId: []byte(key), Client: client, Class: class}
		result := &logv1.AcquireResult{Granted: n%2 == 0, Repeated: n%3 == 0, Queue: &logv1.QueueStatus{Waited: n}}
		for i := range min(times, 20) {
			op.Charges = append(op.Charges, &logv1.Charge{Limit: class, Key: key, Dimension: client, Amount: n + int64(i)})
			denial := &logv1.Denial{Reason: logv1.Reason(i), Limit: class, Key: key, Dimension: client, RetryAfter: n}
			result.Denials = append(result.Denials, denial)
			if i > 1 {
				result.Warnings = append(result.Warnings, denial)
			}
		}
		d := of(op, attempt, result)
		d.Time, d.Node, d.SampleBp = time.Unix(0, n).UTC(), client, int64(attempt)
		want, err := json.Marshal(d)
		if err != nil {
			return // The library does not know such a time.
		}
		if got := d.append(nil); string(got) != string(want)+"\n" {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}

// TestSampling: of the grants so many are written, the same ones by every node, and of
// the denials all.
func TestSampling(t *testing.T) {
	t.Parallel()
	for _, part := range []int64{0, 1, 100, 1000, 5000, Whole} {
		a, b := sampler{part: part}, sampler{part: part}
		named, nameless := 0, 0
		const of = 100_000
		for i := range of {
			id := fmt.Appendf(nil, "%016x", i)
			if a.takes(id) != b.takes(id) {
				t.Fatalf("two nodes don't agree about %s", id)
			}
			if a.takes(id) {
				named++
			}
			if a.takes(nil) {
				nameless++
			}
		}
		want := int(of * part / Whole)
		if nameless != want || named < want*9/10-10 || named > want*11/10+10 {
			t.Errorf("%d of 10,000: %d with and %d without an id, want %d", part, named, nameless, want)
		}
	}
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	c := config(path)
	c.Sample = 1000
	l, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		l.Decided(ask(i), 0, granted())
		l.Decided(ask(i), 0, &logv1.AcquireResult{Denials: []*logv1.Denial{{Reason: logv1.Reason_REASON_RATE}}})
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	grants, denials := 0, 0
	for _, d := range read(t, path) {
		if d.Decision == "denied" && d.SampleBp == 0 {
			denials++
		}
		if d.Decision == "granted" && d.SampleBp == 1000 {
			grants++
		}
	}
	if denials != 1000 || grants < 70 || grants > 130 {
		t.Errorf("%d denials and %d grants of a thousand each", denials, grants)
	}
}

// TestChanges: what operators did is in the file too, with who and why.
func TestChanges(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l, err := Open(config(path))
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)
	limit, budget := &logv1.Limit{Name: "gpt"}, &logv1.RetryBudget{Name: "default"}
	l.Applied(Entry{
		Index: 7, Wall: at,
		Results: []*logv1.Result{
			{},
			{Kind: &logv1.Result_Limits{Limits: &logv1.LimitsResult{Revision: 3, Changes: []*logv1.LimitChange{
				{Name: "gpt", LimitAfter: limit},
				{Name: "old", LimitBefore: limit},
				{Name: "default", BudgetBefore: budget, BudgetAfter: budget},
			}}}},
			{Kind: &logv1.Result_Limits{Limits: &logv1.LimitsResult{Revision: 3}}},
		},
		Effects: []effect.Effect{
			{Kind: effect.LimitChanged, Limit: "gpt"},
			{Kind: effect.LimitDeleted, Limit: "old"},
			{Kind: effect.BudgetChanged, Value: "default"},
			{Kind: effect.LeaseEnded},
			{Kind: effect.Adjusted, Limit: "gpt", Key: "a", Dimension: "tokens", Value: "+5", Client: "ann", Text: "a gift"},
			{Kind: effect.LimitCleared, Limit: "gpt", Key: "a", Client: "ann", Text: strings.Repeat("x", 1<<12)},
		},
	}, func() []*fsm.Revision {
		return []*fsm.Revision{{Revision: 4, Author: "eve"}, {Revision: 3, Author: "bob"}}
	})
	l.Applied(Entry{Effects: []effect.Effect{{Kind: effect.LeaseEnded}}}, nil)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got []Change
	for line := range bytes.Lines(file) {
		var c Change
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		got = append(got, c)
	}
	by := func(c Change) Change {
		c.Time, c.Node, c.Index = at, "n1", 7
		return c
	}
	want := []Change{
		by(Change{
			Change: "adjusted", Author: "ann", Limit: "gpt", Key: "a", Dimension: "tokens", Value: "+5", Reason: "a gift",
		}),
		by(Change{
			Change: "cleared", Author: "ann", Limit: "gpt", Key: "a", Reason: strings.Repeat("x", reasonMost-3) + "…",
		}),
		by(Change{Change: "added", Revision: 3, Author: "bob", Limit: "gpt"}),
		by(Change{Change: "deleted", Revision: 3, Author: "bob", Limit: "old"}),
		by(Change{Change: "changed", Revision: 3, Author: "bob", RetryBudget: "default"}),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	var none *Log
	none.Applied(Entry{}, nil)
}

// TestChangesHaveAQueueOfTheirOwn: decisions that find no room take none from changes.
func TestChangesHaveAQueueOfTheirOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &disk{hold: make(chan struct{})}
		l, err := open(config("audit"), d.open)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 2 * queued {
			l.Decided(ask(i), 0, granted())
		}
		synctest.Wait()
		lost := l.dropped.Load()
		l.Changed(make([]Change, changed)...)
		if l.dropped.Load() != lost || lost == 0 {
			t.Errorf("%d decisions and %d changes were dropped", lost, l.dropped.Load()-lost)
		}
		l.Changed(make([]Change, 2)...)
		if l.dropped.Load() == lost {
			t.Error("changes beyond the bound are not counted")
		}
		close(d.hold)
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if lines := uint64(strings.Count(d.String(), "\n")); lines+l.dropped.Load() != 2*queued+changed+2 {
			t.Errorf("%d lines, %d dropped of %d", lines, l.dropped.Load(), 2*queued+changed+2)
		}
	})
}

// TestTenThousandASecond: at that pace nothing is lost, for a second of real time.
func TestTenThousandASecond(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l, err := Open(config(path))
	if err != nil {
		t.Fatal(err)
	}
	const perTick, ticks = 100, 100
	ticker := time.NewTicker(time.Second / ticks)
	defer ticker.Stop()
	op, result := ask(1), granted()
	for range ticks {
		for range perTick {
			l.Decided(op, 0, result)
		}
		<-ticker.C
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if lines := bytes.Count(file, []byte("\n")); lines != perTick*ticks || l.dropped.Load()+l.failed.Load() != 0 {
		t.Errorf("%d of %d lines, %d dropped", lines, perTick*ticks, l.dropped.Load())
	}
}

// BenchmarkLine is what the writer does for a decision.
func BenchmarkLine(b *testing.B) {
	d := of(ask(1), 1, granted())
	d.Time = time.Now()
	to := make([]byte, 0, 1<<12)
	b.ReportAllocs()
	for b.Loop() {
		to = d.append(to[:0])
	}
}
