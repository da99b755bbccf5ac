package provider

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// steps wait half a second for each try, and 150 to 900 ms more.
var steps = Schedule{Step: 500 * time.Millisecond, Least: 150 * time.Millisecond, Most: 900 * time.Millisecond}

func TestPauses(t *testing.T) {
	t.Run("S3-24_the_hint_is_the_least", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			hint := time.Duration(rapid.Int64Range(0, int64(WaitMax)).Draw(t, "hint"))
			retries := rapid.Int().Draw(t, "retries")
			part := rapid.Int64Range(0, 999).Draw(t, "part")
			w := Wait{Said: true, For: hint}
			schedule := rapid.SampledFrom([]Schedule{{}, steps}).Draw(t, "schedule")
			got := schedule.Pause(w, retries, func(n int64) int64 { return n / 1000 * part })
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
			first := Schedule{}.Pause(Wait{}, retries, func(int64) int64 { return 0 })
			last := Schedule{}.Pause(Wait{}, retries, func(n int64) int64 { return n - 1 })
			if first != longest/2 || last != longest {
				t.Errorf("after %d retries from %s to %s, want %s to %s", retries, first, last, longest/2, longest)
			}
		}
	})
	t.Run("S3-23_who_was_told_the_same_is_spread", func(t *testing.T) {
		seen := map[time.Duration]int{}
		for range 10_000 {
			pause := Schedule{}.Pause(Wait{Said: true, For: 22 * time.Second}, 0, rand.Int64N)
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

// TestSchedule: a pause is a step for each try, and a random part that is evenly spread.
func TestSchedule(t *testing.T) {
	t.Parallel()
	t.Run("S2-20_a_million_draws_after_each_try", func(t *testing.T) {
		for retries, want := range [][2]int64{{650, 1399}, {1150, 1899}} {
			const draws, bins = 1_000_000, 10
			chance := rand.New(rand.NewPCG(20, uint64(retries)))
			seen := [2]int64{math.MaxInt64, 0}
			var spread [bins]int
			for range draws {
				ms := steps.Pause(Wait{}, retries, chance.Int64N).Milliseconds()
				seen[0], seen[1] = min(seen[0], ms), max(seen[1], ms)
				spread[min(max(ms-want[0], 0)*bins/750, bins-1)]++
			}
			if seen != want {
				t.Errorf("after %d retries from %d to %d ms, want %d to %d", retries, seen[0], seen[1], want[0], want[1])
			}
			// 100,000 each: six deviations off.
			for bin, n := range spread {
				if n < 98_200 || n > 101_800 {
					t.Errorf("after %d retries %d of %d in bin %d of %d", retries, n, draws, bin, bins)
				}
			}
		}
	})
	t.Run("S2-10_never_a_fixed_interval", func(t *testing.T) {
		for want, s := range map[string]Schedule{
			"most 0s: must be more than least, 0s, and at most 1m0s": {Step: time.Second},
			"most 1s: must be more than least, 1s, and at most 1m0s": {Least: time.Second, Most: time.Second},
			"most 1m0.000000001s: must be more than least, 0s":       {Most: time.Minute + 1},
			"step -1ns: must be from 0s to 1m0s":                     {Step: -1, Most: 1},
			"step 1m0.000000001s: must be from 0s to 1m0s":           {Step: time.Minute + 1, Most: 1},
			"least -1ns: must be 0s or more":                         {Least: -1, Most: 1},
		} {
			if err := s.Validate(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: %v, want %s", s, err, want)
			}
		}
		for _, s := range []Schedule{{}, steps, {Most: 1}, {Step: time.Minute, Most: time.Minute}} {
			if err := s.Validate(); err != nil {
				t.Errorf("%+v: %v", s, err)
			}
		}
	})
	t.Run("however_many_tries", func(t *testing.T) {
		for _, retries := range []int{math.MinInt, -1, 0, 1 << 40, math.MaxInt} {
			s := Schedule{Step: time.Minute, Most: time.Minute}
			if got := s.Pause(Wait{}, retries, func(int64) int64 { return 0 }); got != time.Minute {
				t.Errorf("after %d retries %s", retries, got)
			}
		}
	})
}
