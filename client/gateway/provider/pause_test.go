package provider

import (
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestPauses(t *testing.T) {
	t.Run("S3-24_the_hint_is_the_least", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			hint := time.Duration(rapid.Int64Range(0, int64(WaitMax)).Draw(t, "hint"))
			retries := rapid.Int().Draw(t, "retries")
			part := rapid.Int64Range(0, 999).Draw(t, "part")
			got := Wait{Said: true, For: hint}.Pause(retries, func(n int64) int64 { return n / 1000 * part })
			if got < hint || got >= hint+pauseExtra {
				t.Fatalf("%s after a hint of %s", got, hint)
			}
		})
	})
	t.Run("S3-30_without_a_hint_it_doubles_and_is_drawn", func(t *testing.T) {
		for retries, longest := range map[int]time.Duration{
			-1: time.Second, 0: time.Second, 1: 2 * time.Second, 2: 4 * time.Second, 5: 32 * time.Second,
			6: time.Minute, 1 << 40: time.Minute,
		} {
			first := Wait{}.Pause(retries, func(int64) int64 { return 0 })
			last := Wait{}.Pause(retries, func(n int64) int64 { return n - 1 })
			if first != longest/2 || last != longest {
				t.Errorf("after %d retries from %s to %s, want %s to %s", retries, first, last, longest/2, longest)
			}
		}
	})
	t.Run("S3-23_who_was_told_the_same_is_spread", func(t *testing.T) {
		seen := map[time.Duration]int{}
		for range 10_000 {
			pause := Wait{Said: true, For: 22 * time.Second}.Pause(0, rand.Int64N)
			seen[pause/(100*time.Millisecond)]++
		}
		// Twenty bins of a tenth of a second, about 500 each: six deviations off.
		for bin, n := range seen {
			if len(seen) != 20 || n < 370 || n > 630 {
				t.Fatalf("%d of 10000 in bin %d of %d, want about 500 of 20", n, bin, len(seen))
			}
		}
	})
}
