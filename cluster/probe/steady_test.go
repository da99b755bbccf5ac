package probe

import (
	"testing"
	"time"
)

// A member is steady for as long as it has answered and kept up without a break: one
// long gap, or one answer from far behind, and it begins anew.
func TestR31SteadyWithoutABreak(t *testing.T) {
	t.Parallel()
	bubbled(t, "steady", func(t *testing.T, b *bubble) {
		steady := func(least, most time.Duration) {
			t.Helper()
			m, _ := b.probers["a"].Member("c")
			if m.Steady < least || m.Steady > most {
				t.Errorf("after %s: steady for %s, want %s to %s", time.Since(b.start), m.Steady, least, most)
			}
		}
		b.set(0, func() { b.lead("a") })
		b.set(12*time.Second, func() {})
		steady(11*time.Second, 13*time.Second)
		b.set(0, func() { b.last["a"] = 1000 })
		b.set(time.Second, func() {})
		steady(0, 0)
		b.set(0, func() { b.applied["a"], b.applied["b"], b.applied["c"] = 1000, 1000, 751 })
		b.set(5*time.Second, func() {})
		steady(4*time.Second, 6*time.Second)
		b.set(0, func() { b.isolate("c") })
		b.set(2*time.Second, func() {})
		steady(0, 0)
		b.set(0, func() { b.heal() })
		b.set(3*time.Second, func() {})
		steady(time.Second, 4*time.Second)
	})
}
