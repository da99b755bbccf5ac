package check

import (
	"bytes"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/entry"
	"github.com/quorlease/quorlease/fsm/fsmtest"
)

var hot = Bucket{Limit: "hot", Key: "a", Dimension: "requests"}

// perSecond is amount tokens a second.
func perSecond(amount, burst int64) Spec {
	return Spec{Amount: amount, Interval: int64(time.Second), TargetBP: whole, Burst: burst}
}

func TestDebits(t *testing.T) {
	t.Parallel()
	type step struct {
		at time.Duration
		do func(d *Debits, now int64)
	}
	debit := func(n int64) func(*Debits, int64) {
		return func(d *Debits, now int64) { d.Debit(hot, n, now) }
	}
	limit := func(s Spec) func(*Debits, int64) {
		return func(d *Debits, now int64) { d.Limit("hot", "requests", s, now) }
	}
	refund := func(n int64) func(*Debits, int64) {
		return func(d *Debits, now int64) { d.Refund(hot, n, now) }
	}
	for name, row := range map[string]struct {
		steps   []step
		broken  int
		closest int64
	}{
		"G1_exactly_the_bound_is_kept": {
			[]step{{0, debit(10)}, {time.Second, debit(5)}, {3 * time.Second, debit(10)}}, 0, 0,
		},
		"G1_one_debit_too_many_is_caught": {
			[]step{{0, debit(10)}, {time.Second, debit(5)}, {3 * time.Second, debit(10)}, {3 * time.Second, debit(1)}}, 1, -1,
		},
		"G1_a_nanosecond_too_early_is_caught": {
			[]step{{0, debit(10)}, {time.Second - 1, debit(5)}}, 1, -1,
		},
		"G1_a_long_idle_time_earns_no_more_than_the_burst": {
			[]step{{time.Hour, debit(11)}}, 1, -1,
		},
		"G1_what_came_back_counts_less": {
			[]step{{0, debit(10)}, {0, refund(4)}, {0, debit(4)}}, 0, 0,
		},
		"G1_what_came_back_earns_no_more_than_the_burst": {
			[]step{{0, debit(4)}, {time.Second, refund(4)}, {time.Second, debit(11)}}, 1, -1,
		},
		"G1_a_larger_burst_is_no_gift": {
			[]step{{time.Second, limit(perSecond(5, 100))}, {time.Second, debit(11)}}, 1, -1,
		},
		"G1_a_larger_burst_fills_at_the_rate": {
			[]step{{time.Second, limit(perSecond(5, 100))}, {2 * time.Second, debit(15)}}, 0, 0,
		},
		"G1_a_smaller_burst_counts_at_once": {
			[]step{{time.Second, limit(perSecond(5, 3))}, {time.Second, debit(4)}}, 1, -1,
		},
		"G1_the_old_rate_counts_up_to_the_change": {
			[]step{
				{0, debit(10)},
				{time.Second, limit(perSecond(1, 10))},
				{2 * time.Second, debit(6)},
				{2 * time.Second, debit(1)},
			}, 1, -1,
		},
		"G1_an_adjusted_bucket_begins_anew": {
			[]step{{0, debit(10)}, {0, func(d *Debits, now int64) { d.Adjusted(hot, now) }}, {0, debit(10)}}, 0, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := NewDebits()
			d.Limit("hot", "requests", perSecond(5, 10), 0)
			for _, s := range row.steps {
				s.do(d, int64(s.at))
			}
			got := d.Verdict()
			if got.Broken != row.broken || got.Closest != row.closest || (got.Worst != "") != (row.broken > 0) {
				t.Errorf("broken %d, closest %d, worst %q; want broken %d, closest %d",
					got.Broken, got.Closest, got.Worst, row.broken, row.closest)
			}
		})
	}
}

// The running minimum says what looking at every interval says.
func TestEveryInterval(t *testing.T) {
	t.Run("G1_the_running_minimum_is_every_interval", rapid.MakeCheck(func(t *rapid.T) {
		amount := rapid.Int64Range(0, 20).Draw(t, "amount")
		interval := rapid.Int64Range(1, 1000).Draw(t, "interval")
		burst := rapid.Int64Range(1, 30).Draw(t, "burst")
		target := rapid.Int64Range(1, whole).Draw(t, "target")
		type take struct{ at, tokens int64 }
		var takes []take
		now := int64(0)
		d := NewDebits()
		d.Limit("hot", "requests", Spec{amount, interval, target, burst}, 0)
		for range rapid.IntRange(1, 20).Draw(t, "count") {
			now += rapid.Int64Range(0, 500).Draw(t, "gap")
			tokens := rapid.Int64Range(1, 10).Draw(t, "tokens")
			takes = append(takes, take{now, tokens})
			d.Debit(hot, tokens, now)
		}
		broken := 0
		for j := range takes {
			sum, over := int64(0), false
			for i := j; i >= 0; i-- {
				sum += takes[i].tokens
				// sum ≤ burst + rate·d, times interval · 10,000.
				left := new(big.Int).Mul(big.NewInt(burst-sum), big.NewInt(interval*whole))
				left.Add(left, new(big.Int).Mul(big.NewInt(amount*target), big.NewInt(takes[j].at-takes[i].at)))
				over = over || left.Sign() < 0
			}
			if over {
				broken++
			}
		}
		if got := d.Verdict().Broken; got != broken {
			t.Fatalf("broken at %d moments, by every interval at %d: %v", got, broken, takes)
		}
	}))
}

func TestOutside(t *testing.T) {
	t.Parallel()
	// 100 tokens a second, a burst of 50, slots of 10 ms: a window of d may have
	// 50 + 100 · (d + slack + 10 ms) tokens, and a thousandth of the rate.
	history := func(tokens map[int]uint32) *Spending {
		row := make([]uint32, 100)
		for slot, n := range tokens {
			row[slot] = n
		}
		return &Spending{
			Limit: "hot", Dimension: "requests", Amount: 100, Interval: time.Second, Burst: 50,
			Slot: 10 * time.Millisecond, Keys: []Row{{"quiet", make([]uint32, 100)}, {"a", row}},
		}
	}
	for name, row := range map[string]struct {
		tokens map[int]uint32
		slack  time.Duration
		broken int
	}{
		"G2_a_burst_and_the_slack_at_once": {map[int]uint32{0: 51 + 20}, 200 * time.Millisecond, 0},
		"G2_one_more_is_caught":            {map[int]uint32{0: 51 + 21}, 200 * time.Millisecond, 1},
		"G2_the_rate_fills_between":        {map[int]uint32{0: 51, 60: 51}, 0, 0},
		"G2_a_window_in_the_middle":        {map[int]uint32{0: 1, 50: 30, 60: 32}, 0, 1},
		"G2_other_windows_do_not_hide_it":  {map[int]uint32{0: 40, 50: 30, 60: 31, 99: 1}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := history(row.tokens).Outside(row.slack)
			if got.Broken != row.broken || got.Buckets != 1 {
				t.Errorf("broken at %d moments in %d buckets, want %d in 1: %s", got.Broken, got.Buckets, row.broken, got.Worst)
			}
		})
	}
}

// replayed is a log in which two clients drain a bucket, one gives something
// back, and the limit changes.
func replayed(t *testing.T) *Replay {
	t.Helper()
	limit := fsmtest.Keyed("hot", fsmtest.Dimension(t, "requests", "5/1s", 10))
	smaller := fsmtest.Keyed("hot", fsmtest.Dimension(t, "requests", "1/1s", 10))
	charge := func(n int64) *logv1.Charge { return fsmtest.Charge("hot", "a", "requests", n) }
	r := NewReplay()
	index := uint64(0)
	for _, one := range []struct {
		at  time.Duration
		ops []*logv1.Operation
	}{
		{0, []*logv1.Operation{fsmtest.Apply(limit)}},
		{time.Second, []*logv1.Operation{
			fsmtest.Track("one", charge(6)), fsmtest.Acquire("two", charge(5)), fsmtest.Acquire("three", charge(4)),
		}},
		{time.Second, []*logv1.Operation{fsmtest.Settle("one", "requests", 2), fsmtest.Settle("one", "requests", 2)}},
		{2 * time.Second, []*logv1.Operation{fsmtest.Apply(smaller), fsmtest.Acquire("four", charge(9))}},
	} {
		index++
		data, err := entry.Encode(&logv1.Entry{Stamp: int64(one.at), Operations: one.ops})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Entry(index, 0, data); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func TestReplay(t *testing.T) {
	t.Parallel()
	t.Run("G1_a_clean_log", func(t *testing.T) {
		t.Parallel()
		h := replayed(t).History()
		// 10 were granted and 4 came back; then 4 + 5 were there.
		if h.Broken != 0 || h.Closest != 0 || h.Takes != 3 || h.Granted["hot"] != 15 || h.Buckets != 1 {
			t.Errorf("%+v; want 3 debits of 15 tokens in all in one bucket, none left at the closest", h)
		}
		if h.First != 1 || h.Last != 4 || h.From != 0 || h.To != 2*time.Second {
			t.Errorf("entries %d to %d, %v to %v; want 1 to 4, 0s to 2s", h.First, h.Last, h.From, h.To)
		}
	})
	t.Run("G1_a_machine_that_grants_one_too_many", func(t *testing.T) {
		t.Parallel()
		r := replayed(t)
		r.operation(fsmtest.Acquire("five", fsmtest.Charge("hot", "a", "requests", 1)),
			&logv1.Result{Kind: &logv1.Result_Acquire{Acquire: &logv1.AcquireResult{Granted: true}}})
		h := r.History()
		if want := "hot/a requests: 1 tokens above burst + rate·d at 2.000000 s"; h.Broken != 1 || h.Worst != want {
			t.Errorf("broken %d, worst %q; want 1, %q", h.Broken, h.Worst, want)
		}
	})
	t.Run("from_a_snapshot", func(t *testing.T) {
		t.Parallel()
		var saved bytes.Buffer
		snapshot := replayed(t).machine.Snapshot()
		if _, err := snapshot.WriteTo(&saved); err != nil {
			t.Fatal(err)
		}
		r := NewReplay()
		if err := r.Restore(&saved); err != nil {
			t.Fatal(err)
		}
		data, err := entry.Encode(&logv1.Entry{Stamp: int64(4 * time.Second), Operations: []*logv1.Operation{
			fsmtest.Acquire("six", fsmtest.Charge("hot", "a", "requests", 2)),
		}})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Entry(9, 0, data); err != nil {
			t.Fatal(err)
		}
		if h := r.History(); h.Takes != 1 || h.Closest != 8 || h.Broken != 0 || !h.Partial {
			t.Errorf("%+v; want one debit of 2 of a full bucket", h)
		}
	})
	t.Run("what_is_no_entry", func(t *testing.T) {
		t.Parallel()
		if err := NewReplay().Entry(1, 0, []byte("nonsense")); err == nil {
			t.Error("no error")
		}
		if err := NewReplay().Restore(bytes.NewReader(nil)); err == nil {
			t.Error("no error for an empty snapshot")
		}
	})
}
