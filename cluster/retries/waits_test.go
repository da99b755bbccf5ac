package retries_test

import (
	"runtime"
	"testing"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/retries"
	"github.com/quorlease/quorlease/fsm/tally"
)

// TestWaitsThatAreKept: S1-13 asks whether a client honours the waits it is told.
func TestWaitsThatAreKept(t *testing.T) {
	t.Parallel()
	count := func(t *testing.T, gap time.Duration, limits ...string) tally.Count {
		t.Helper()
		o := newOffice(t, 1, nil)
		o.now = 1000 * time.Second
		o.ask(work("c", "gpt"), 0, granted())
		o.report()
		for range 5 {
			o.ask(work("c", "gpt"), 0, denied("gpt", time.Second))
			o.now += gap
			o.ask(work("c", limits...), 0, granted())
		}
		return o.stat("c").Count
	}
	for _, c := range []struct {
		name          string
		gap           time.Duration
		limits        []string
		denied, early int64
	}{
		{"S1-13_early", 999 * time.Millisecond, []string{"gpt"}, 5, 5},
		{"S1-13_in_time", time.Second, []string{"gpt"}, 5, 0},
		{"S1-13_another_limit_is_not_early", time.Millisecond, []string{"claude"}, 5, 4},
		{"S1-13_one_of_two_limits_is", time.Millisecond, []string{"claude", "gpt"}, 5, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := count(t, c.gap, c.limits...)
			// Where the other limit is asked in between, the next acquire for gpt is the
			// one that comes early.
			if got.Denied != c.denied || got.Early != c.early {
				t.Errorf("%d denied and %d early, want %d and %d", got.Denied, got.Early, c.denied, c.early)
			}
		})
	}
	t.Run("the_budget's_own_wait_counts", func(t *testing.T) {
		t.Parallel()
		o := newOffice(t, 1, nil)
		for range 51 {
			o.ask(work("c", "gpt"), 1, granted())
			o.report()
		}
		for range 3 {
			o.ask(work("c", "claude"), 0, granted())
			o.now += 59 * time.Second
		}
		if got := o.stat("c").Count; got.Denied != 3 || got.Early != 2 {
			t.Errorf("%+v, want 3 denied and 2 early", got)
		}
	})
	t.Run("a_part_used_up_says_nothing_of_the_client", func(t *testing.T) {
		t.Parallel()
		o := newOffice(t, 3, nil)
		for range 30 {
			o.ask(work("c", "gpt"), 1, granted())
		}
		if got := o.stat("c").Count; got.Total != 17 || got.Denied != 0 || got.Early != 0 {
			t.Errorf("%+v, want 17 requests and nothing else", got)
		}
	})
}

func TestRefusedStrangers(t *testing.T) {
	t.Run("S1-52", func(t *testing.T) {
		o := newOffice(t, 1, nil)
		for i := range 1000 {
			name := string(rune('A'+i%26)) + string(rune('a'+i/26%26)) + string(rune('0'+i/676))
			o.ask(work(name, "gpt"), 0, denied("gpt", time.Minute))
			o.ask(work(name, "gpt"), 9, granted())
		}
		if clients, slots := o.desk.Counter.Kept(); clients != 0 || slots != 0 {
			t.Errorf("%d clients and %d slots are kept of clients that were only refused", clients, slots)
		}
	})
	t.Run("S1-52_ten_minutes_of_refusals_leave_the_heap_as_it_was", func(t *testing.T) {
		// Not parallel: it looks at all of the program's memory.
		o := newOffice(t, 1, nil)
		for range 51 {
			o.ask(work("storm", "gpt"), 1, granted())
			o.report()
		}
		refuse := func(calls int) {
			for i := range calls {
				if i%200 == 0 {
					o.now += time.Second
					o.report()
				}
				if o.ask(work("storm", "gpt"), 1, granted()).Denial == nil {
					t.Fatalf("call %d is admitted", i)
				}
			}
		}
		heap := func() uint64 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		// 200 calls a second are 12,000 a minute; the window is full of them after a
		// while, and then nothing grows.
		refuse(20_000)
		before := heap()
		refuse(30_000)
		if after := heap(); after > before+256<<10 {
			t.Errorf("the heap grew from %d to %d bytes", before, after)
		}
	})
	t.Run("G10_waits_are_bounded", func(t *testing.T) {
		t.Parallel()
		w := retries.NewWaits(10)
		for i := range 1000 {
			w.Tell(time.Duration(i)*time.Millisecond, string(rune('A'+i)), denied("gpt", time.Hour).GetDenials())
		}
		early := 0
		for i := range 1000 {
			if w.Early(2*time.Second, work(string(rune('A'+i)), "gpt")) {
				early++
			}
		}
		if early != 10 {
			t.Errorf("%d waits are remembered, the bound is 10", early)
		}
		if w.Tell(0, "c", []*logv1.Denial{{Reason: logv1.Reason_REASON_ATTEMPTS}}) {
			t.Error("a denial for good is a wait")
		}
		w.Tell(3*time.Hour, "c", denied("gpt", time.Hour).GetDenials())
		if !w.Early(3*time.Hour, work("c", "gpt")) {
			t.Error("what is over makes no room")
		}
	})
}
