package failopen

import (
	"math"
	"testing"
	"time"
)

func TestJitter(t *testing.T) {
	t.Run("a_thousand_clients_told_ten_minutes", func(t *testing.T) {
		const clients, hint = 1000, 10 * time.Minute
		bins := make(map[time.Duration]int)
		for range clients {
			wait := Jitter(hint)
			if wait < hint || wait > hint+hint/10 {
				t.Fatalf("waits %v, told %v", wait, hint)
			}
			bins[wait.Truncate(time.Second)]++
		}
		for bin, n := range bins {
			if n > clients/20 {
				t.Errorf("%d of %d come back in second %v", n, clients, bin)
			}
		}
		if len(bins) < 50 {
			t.Errorf("they come back in %d different seconds, want nearly 60", len(bins))
		}
	})
	t.Run("extremes", func(t *testing.T) {
		for _, hint := range []time.Duration{math.MinInt64, -1, 0} {
			if got := Jitter(hint); got != 0 {
				t.Errorf("Jitter(%v) = %v", hint, got)
			}
		}
		for _, hint := range []time.Duration{1, time.Millisecond, math.MaxInt64 - 1, math.MaxInt64} {
			if got := Jitter(hint); got < hint {
				t.Errorf("Jitter(%v) = %v", hint, got)
			}
		}
	})
}
