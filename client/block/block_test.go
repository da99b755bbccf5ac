package block

import (
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestLife(t *testing.T) {
	for _, c := range []struct{ ttl, want time.Duration }{
		{5 * time.Second, 4995 * time.Millisecond},
		{time.Millisecond, 999 * time.Microsecond},
		{0, 0},
		{-time.Second, 0},
	} {
		if got := Life(c.ttl); got != c.want {
			t.Errorf("Life(%s) = %s, want %s", c.ttl, got, c.want)
		}
	}
}

func TestSpend(t *testing.T) {
	b := New("id", 10, time.Second, 10*time.Second)
	for _, c := range []struct {
		name string
		now  time.Duration
		n    int64
		want bool
		left int64
	}{
		{"some", time.Second, 4, true, 6},
		{"more_than_is_left", time.Second, 7, false, 6},
		{"all_but_one", 2 * time.Second, 5, true, 1},
		{"G2_at_the_end", time.Second + 9990*time.Millisecond, 1, false, 1},
		{"just_before_the_end", time.Second + 9990*time.Millisecond - 1, 1, true, 0},
		{"of_nothing", time.Second, 1, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			said, got := b.Spend(c.now, c.n)
			if got != c.want || b.Left() != c.left || said != c.left && c.now < b.End() {
				t.Errorf("Spend(%s, %d) = %d, %v with %d left, want %v with %d", c.now, c.n, said, got, b.Left(), c.want, c.left)
			}
		})
	}
}

func TestSettleInside(t *testing.T) {
	b := New("id", 100, 0, time.Minute)
	b.Spend(0, 80)
	if !b.Settle(50, 20) || b.Left() != 50 {
		t.Errorf("after a refund of 30: %d left, want 50", b.Left())
	}
	if !b.Settle(30, 70) || b.Left() != 10 {
		t.Errorf("after an excess of 40: %d left, want 10", b.Left())
	}
	if !b.Settle(0, 25) || b.Left() != 0 {
		t.Errorf("after an excess of 25 with 10 left: %d left, want 0", b.Left())
	}
	if spend(b, 0, 1) {
		t.Error("a block that owes was spent")
	}
	if used, first := b.Close(); used != 115 || !first {
		t.Errorf("closed with %d used, first %v; want 115, true", used, first)
	}
	if used, first := b.Close(); used != 0 || first {
		t.Errorf("closed again with %d used, first %v; want 0, false", used, first)
	}
	if b.Settle(1, 0) || spend(b, 0, 1) || b.Left() != 0 || !b.Closed() {
		t.Error("a closed block was settled or spent")
	}
}

func TestDue(t *testing.T) {
	b := New("id", 10, 0, 10*time.Second)
	if b.Due(4994 * time.Millisecond) {
		t.Error("due with all tokens and more than half of the life")
	}
	if !b.Due(4995 * time.Millisecond) {
		t.Error("not due at half of the life")
	}
	b.Spend(0, 5)
	if b.Due(0) {
		t.Error("due with half of the tokens")
	}
	b.Spend(0, 1)
	if !b.Due(0) {
		t.Error("not due with less than half of the tokens")
	}
}

// TestG2NeverMoreThanGranted does anything in any order, over several blocks,
// and keeps books beside them.
func TestG2NeverMoreThanGranted(t *testing.T) {
	t.Run("G2", rapid.MakeCheck(func(t *rapid.T) {
		granted := rapid.Int64Range(1, 1000).Draw(t, "granted")
		start := time.Duration(rapid.Int64Range(0, 1000).Draw(t, "start"))
		ttl := time.Duration(rapid.Int64Range(1, 100_000).Draw(t, "ttl"))
		b := New("id", granted, start, ttl)
		now, spent, excess := start, int64(0), int64(0)
		var open []int64
		take := func(n int64) {
			spent += n
			open = append(open, n)
			if now >= start+ttl-ttl/1000 {
				t.Fatalf("spent %d at %s, the life ended at %s", n, now, b.End())
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"advance": func(t *rapid.T) { now += time.Duration(rapid.Int64Range(0, 20_000).Draw(t, "by")) },
			"spend": func(t *rapid.T) {
				n := rapid.Int64Range(1, 300).Draw(t, "n")
				if spend(b, now, n) {
					take(n)
				}
			},
			"spend up to": func(t *rapid.T) {
				if n := b.SpendUpTo(now, rapid.Int64Range(1, 300).Draw(t, "n")); n > 0 {
					take(n)
				}
			},
			"settle": func(t *rapid.T) {
				if len(open) == 0 {
					return
				}
				used := rapid.Int64Range(0, 300).Draw(t, "used")
				if b.Settle(open[0], used) {
					spent += used - open[0]
					excess += max(0, used-open[0])
				}
				open = open[1:]
			},
			"": func(t *rapid.T) {
				if spent > granted+excess {
					t.Fatalf("%d spent of %d granted, excesses %d", spent, granted, excess)
				}
				if want := max(0, granted-spent); b.Left() != want {
					t.Fatalf("%d left, want %d", b.Left(), want)
				}
			},
		})
		if used, _ := b.Close(); used != spent {
			t.Fatalf("closed with %d used, want %d", used, spent)
		}
	}))
}

func TestConcurrentSpending(t *testing.T) {
	const granted, goroutines = 100_000, 8
	b := New("id", granted, 0, time.Minute)
	var joined sync.WaitGroup
	spent := make([]int64, goroutines)
	for g := range goroutines {
		joined.Go(func() {
			n := int64(g%3 + 1)
			for turn := 0; spend(b, 0, n); turn++ {
				spent[g] += n
				if turn%7 == 0 && b.Settle(n, n-1) {
					spent[g]--
				}
			}
			spent[g] += b.SpendUpTo(0, n)
		})
	}
	joined.Wait()
	total := b.Left()
	for _, n := range spent {
		total += n
	}
	if total != granted {
		t.Errorf("%d tokens spent or left of %d", total, granted)
	}
}

func TestSpendAllocatesNothing(t *testing.T) {
	b := New("id", TokensMax, 0, time.Minute)
	if n := testing.AllocsPerRun(1000, func() { b.Spend(0, 2); b.Settle(2, 1) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

// BenchmarkSpend compares a block with the least that a lock would cost.
func BenchmarkSpend(b *testing.B) {
	b.Run("block", func(b *testing.B) {
		held := New("id", TokensMax, 0, time.Minute)
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				held.Spend(0, 1)
			}
		})
	})
	b.Run("mutex", func(b *testing.B) {
		var mu sync.Mutex
		left := int64(TokensMax)
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				mu.Lock()
				if left > 0 {
					left--
				}
				mu.Unlock()
			}
		})
	})
}

// spend is Spend for who does not ask what is left.
func spend(b *Block, now time.Duration, n int64) bool {
	_, ok := b.Spend(now, n)
	return ok
}
