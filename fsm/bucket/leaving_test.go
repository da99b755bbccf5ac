package bucket

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestG7WhatIsKeptIsNotPromised: who has to leave tokens to others and waits as long as
// told is granted, then and later; not sooner, but for a moment where others' parts are
// not full yet. Where it is told never, no time is enough.
func TestG7WhatIsKeptIsNotPromised(t *testing.T) {
	t.Run("G7", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			s := mustShape(t, drawReal(t))
			b := drawUsed(t, s)
			class := drawClass(t, s)
			n := rapid.Int64Range(1, s.EffectiveBurst(class)).Draw(t, "n")
			keep := rapid.OneOf(rapid.Int64Range(0, s.Burst()), rapid.Just(int64(1)<<53)).Draw(t, "keep")
			wait, isNever := b.RetryAfterLeaving(s, class, n, keep)
			grants := func(after time.Duration) bool {
				later := b.Clone()
				later.Advance(s, b.Last()+Instant(after))
				_, ok := later.TakeLeaving(s, class, n, keep)
				return ok
			}
			full, fills := b.FullAt(s)
			if !fills {
				t.Fatalf("%+v is never full", b)
			}
			if isNever {
				if grants(time.Duration(full-b.Last()) + time.Millisecond) {
					t.Fatalf("%d beside %d is told never, and granted of a full bucket: %+v", n, keep, b)
				}
				return
			}
			if wait < 0 || wait%time.Millisecond != 0 {
				t.Fatalf("retry after %v, want whole milliseconds", wait)
			}
			for i := range 5 {
				if after := wait + time.Duration(i)*time.Duration(full-b.Last())/4; !grants(after) {
					t.Fatalf("%d beside %d: refused after %v, told %v: %+v", n, keep, after, wait, b)
				}
			}
			if n+keep <= s.EffectiveBurst(class) && wait > 0 && grants(wait-time.Millisecond) {
				t.Fatalf("%d beside %d: granted one millisecond before %v: %+v", n, keep, wait, b)
			}
		})
	})
}
