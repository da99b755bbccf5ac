package charge_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/gateway/charge"
)

// TestBounds: whatever clients send, what is kept of it is bounded (G10), and given up
// when nobody needs it (S2-27).
func TestBounds(t *testing.T) {
	t.Run("S2-27_S1-52_plans_and_limiters", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			d := w.desk(func(c *charge.Config) { c.Plans, c.Limiters, c.Busy = 16, 5, 1 })
			for i := range 200 {
				tenants := 100
				if i >= 100 {
					tenants = 10
				}
				w.take(d, call(fmt.Sprint("t", i%tenants), 10)).Settle(nil)
				pass(10 * time.Millisecond)
				if s := d.Stats(); s.Plans > 16 || s.Limiters > 5 {
					t.Fatalf("%+v, want 16 plans and 5 limiters at most", s)
				}
			}
			if s := d.Stats(); s.Limiters != 5 || s.Plans != 16 {
				t.Errorf("%+v, want the bounds used", s)
			}
			pass(2 * time.Minute)
			if s := d.Stats(); s.Plans != 0 || s.Limiters != 0 {
				t.Errorf("%+v after two idle minutes, want nothing", s)
			}
			w.warm(d, call("t1", 10))
			_ = d.Close()
			if _, leases := w.level("deployment", "d"); leases != 0 {
				t.Errorf("%d leases are open", leases)
			}
		})
	})
	t.Run("S3-09_a_limiter_waits_for_what_has_not_ended", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			d := w.desk(func(c *charge.Config) { c.Idle = time.Second })
			w.warm(d, call("a", 10))
			c := w.take(d, call("a", 10))
			pass(time.Minute)
			if s := d.Stats(); s.Limiters != 4 {
				t.Errorf("%+v, want the limiters of a call that goes on", s)
			}
			c.Settle(map[string]int64{"tokens": 5000})
			w.take(d, call("a", 10)).Settle(nil)
			pass(time.Minute)
			if s := d.Stats(); s.Limiters != 0 {
				t.Errorf("%+v, want no limiter", s)
			}
		})
	})
}

// TestForgotten: what a plan is paid from may be forgotten before the plan is.
func TestForgotten(t *testing.T) {
	t.Run("S2-27", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			d := w.desk(func(c *charge.Config) { c.Idle, c.PlanLife = time.Second, time.Minute })
			w.warm(d, call("a", 10))
			pass(10 * time.Second)
			before := d.Stats()
			if before.Limiters != 0 || before.Plans != 1 {
				t.Fatalf("%+v, want a plan without limiters", before)
			}
			w.warm(d, call("a", 10))
			if s := d.Stats(); s.Learned != before.Learned+1 || s.Limiters != 4 {
				t.Errorf("%+v, want it learned anew", s)
			}
		})
	})
}

// purses are limits of which nothing comes back but what was not used.
const purses = `
limits:
- {name: purse, match: {purse: "*"}, per: [purse], rate: {tokens: 0/s}, burst: {tokens: 10_000_000},
   max_open: {tokens: 10_000_000}, max_debt: {tokens: 1_000_000}, lease: 1h}
- {name: all, match: {purse: "*"}, rate: {tokens: 0/s, calls: 0/s}, burst: {tokens: 100_000_000, calls: 100_000},
   max_open: {tokens: 100_000_000, calls: 100_000}, max_debt: {tokens: 1_000_000, calls: 1}, lease: 1h}
- {name: few, match: {few: "*"}, concurrency: 3}
- {name: tight, match: {tight: "*"}, rate: {tokens: 50_000/s}, burst: {tokens: 5000}}
`

// spender makes calls of all kinds, and remembers what each purse has paid.
type spender struct {
	desk *charge.Desk

	mu     sync.Mutex
	tokens map[string]int64
	calls  int64
}

func (s *spender) spend(w *world, work charge.Work, took time.Duration, used int64) {
	c, _, err := s.desk.Take(w.t.Context(), work)
	if err != nil {
		w.t.Error(err)
	}
	if c == nil {
		return
	}
	pass(took)
	if used < 0 {
		c.Release()
		return
	}
	c.Settle(map[string]int64{"tokens": used})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens[work.Attributes["purse"]] += used
	s.calls++
}

// TestWhatIsSettledIsWhatIsPaid: whichever way calls are paid, and however they end, the
// authority has in the end been paid exactly what they have used.
func TestWhatIsSettledIsWhatIsPaid(t *testing.T) {
	for seed := range 5 {
		t.Run("S3-09_S1-07", func(t *testing.T) {
			draw := rapid.Custom(func(t *rapid.T) [][4]int64 {
				return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) [4]int64 {
					return [4]int64{
						rapid.Int64Range(0, 2).Draw(t, "purse"), rapid.Int64Range(1, 3000).Draw(t, "estimate"),
						rapid.Int64Range(-300, 4000).Draw(t, "used"), rapid.Int64Range(0, 999).Draw(t, "took"),
					}
				}), 500, 500).Draw(t, "calls")
			}).Example(seed)
			bubble(t, func(t *testing.T, w *world) {
				w.limits(purses)
				s := &spender{desk: w.desk(nil), tokens: map[string]int64{}}
				var calls sync.WaitGroup
				for i, one := range draw {
					work := charge.Work{
						Attributes: map[string]string{"purse": fmt.Sprint("p", one[0])},
						Amounts:    map[string]int64{"tokens": one[1], "calls": 1},
					}
					if i%3 == 0 {
						// It refuses often, after the others have been taken from.
						work.Attributes["tight"] = "x"
					}
					if i%20 == 0 {
						work.Attributes["few"], work.MaxWait = "x", time.Minute
					}
					calls.Go(func() { s.spend(w, work, time.Duration(one[3])*time.Millisecond, one[2]) })
					pass(time.Duration(one[3]%20) * time.Millisecond)
				}
				calls.Wait()
				stats := s.desk.Stats()
				_ = s.desk.Close()
				if stats.Permits < 100 || stats.Asked < 26 || s.calls < 200 || stats.Short == 0 {
					t.Errorf("%d calls, %+v: not what was to be tried", s.calls, stats)
				}
				w.paid(s)
			})
		})
	}
}

// paid compares what the authority has been paid.
func (w *world) paid(s *spender) {
	w.t.Helper()
	var sum int64
	for purse, tokens := range s.tokens {
		sum += tokens
		if levels, leases := w.level("purse", purse); 10_000_000-levels["tokens"] != tokens || leases != 0 {
			w.t.Errorf("%s has paid %d for %d, %d leases are open", purse, 10_000_000-levels["tokens"], tokens, leases)
		}
	}
	levels, leases := w.level("all", "")
	if 100_000_000-levels["tokens"] != sum || 100_000-levels["calls"] != s.calls || leases != 0 {
		w.t.Errorf("all have paid %d and %d for %d tokens of %d calls, %d leases are open",
			100_000_000-levels["tokens"], 100_000-levels["calls"], sum, s.calls, leases)
	}
	if _, leases := w.level("few", ""); leases != 0 {
		w.t.Errorf("%d slots are in use", leases)
	}
}

// BenchmarkPermit is a call that is paid from what is held, of four limits and dimensions.
func BenchmarkPermit(b *testing.B) {
	stop, authority, err := alone()
	if err != nil {
		b.Fatal(err)
	}
	defer stop()
	d, err := charge.New(charge.Config{Authority: authority})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	work := call("a", 10)
	used := map[string]int64{"tokens": 7}
	one := func() {
		c, decision, err := d.Take(b.Context(), work)
		if c == nil {
			b.Fatalf("%+v, %v", decision, err)
		}
		c.Settle(used)
	}
	for began := time.Now(); d.Stats().Permits < 100; {
		if one(); time.Since(began) > 10*time.Second {
			b.Fatalf("%+v", d.Stats())
		}
	}
	b.ReportAllocs()
	before := d.Stats()
	b.ResetTimer()
	for b.Loop() {
		one()
	}
	b.StopTimer()
	if s := d.Stats(); s.Asked-before.Asked > uint64(b.N/100)+5 || s.Local > 0 {
		b.Errorf("%d of %d calls asked, %+v", s.Asked-before.Asked, b.N, s)
	}
}

var _ charge.Authority = (*client.Client)(nil)
