package fallback_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quorlease/quorlease/client/gateway/fallback"
	"github.com/quorlease/quorlease/client/gateway/provider"
)

// trouble is any.
func trouble(t *rapid.T) fallback.Trouble {
	span := rapid.Int64Range(0, int64(time.Hour))
	return fallback.Trouble{
		Cause:    fallback.Cause(rapid.IntRange(int(fallback.None), int(fallback.Unreached)).Draw(t, "cause")),
		Refusals: rapid.IntRange(0, 10).Draw(t, "refusals"),
		Wait:     time.Duration(span.Draw(t, "wait")), Allowed: time.Duration(span.Draw(t, "allowed")),
		Last: rapid.Bool().Draw(t, "last"),
	}
}

// TestRule: never for the first 429 unless the class is critical, and only for a wait that is
// longer than it may be.
func TestRule(t *testing.T) {
	t.Parallel()
	t.Run("S2-28_never_on_the_first_429", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(t *rapid.T) {
			m := fallback.Manner{Mode: fallback.Mode(rapid.IntRange(0, int(fallback.Defer)).Draw(t, "mode"))}
			of := trouble(t)
			considered := m.Considers(of)
			long := of.Last || of.Wait > of.Allowed
			first := of.Cause == fallback.Refused && of.Refusals < 2
			switch {
			case m.Mode == fallback.Immediate:
				if considered != (of.Cause != fallback.None) {
					t.Fatalf("%+v of a critical class: %v", of, considered)
				}
			case considered && (first || !long || m.Mode != fallback.Jitter):
				t.Fatalf("%v falls back for %+v", m.Mode, of)
			case !considered && m.Mode == fallback.Jitter && !first && of.Cause != fallback.None && long:
				t.Fatalf("%+v does not fall back", of)
			}
		})
	})
	t.Run("S2-04_what_is_slower_than_waiting_is_passed_over", func(t *testing.T) {
		t.Parallel()
		const second = time.Second
		for _, row := range []struct {
			wait, own, other time.Duration
			sooner           bool
		}{
			{30 * second, 2 * second, 31 * second, true},
			{30 * second, 2 * second, 32 * second, false},
			{second, 2 * second, 2 * second, true},
			{0, 2 * second, time.Hour, true},
			{second, 0, time.Hour, true},
			{second, 2 * second, 0, true},
		} {
			if got := (fallback.Trouble{Wait: row.wait}).IsSooner(row.own, row.other); got != row.sooner {
				t.Errorf("%+v: %v", row, got)
			}
		}
	})
}

// TestManners: how long each mode waits between tries.
func TestManners(t *testing.T) {
	t.Parallel()
	t.Run("S2-33_fixed_is_fixed_and_the_others_are_not", func(t *testing.T) {
		t.Parallel()
		r := rand.New(rand.NewPCG(1, 33))
		said := provider.Wait{Said: true, For: 5 * time.Second}
		for _, m := range []fallback.Manner{
			{},
			{Mode: fallback.Immediate},
			{Mode: fallback.Defer},
			{Mode: fallback.Fixed},
			{Mode: fallback.Fixed, Delay: 7 * time.Second},
		} {
			pauses := map[time.Duration]bool{}
			for range 50 {
				pauses[m.Pause(provider.Schedule{}, provider.Wait{}, 0, r.Int64N)] = true
				if got := m.Pause(provider.Schedule{}, said, 0, r.Int64N); got < said.For {
					t.Errorf("%+v waits %v where the provider asks for %v", m, got, said.For)
				}
			}
			if fixed := m.Mode == fallback.Fixed; fixed != (len(pauses) == 1) || fixed && !pauses[max(m.Delay, time.Second)] {
				t.Errorf("%+v waits %v", m, pauses)
			}
		}
	})
	t.Run("names", func(t *testing.T) {
		t.Parallel()
		for m, name := range []string{"jitter", "fixed", "immediate", "defer", "unknown"} {
			if got := fallback.Mode(m).String(); got != name {
				t.Errorf("%d is called %s", m, got)
			}
		}
	})
}
