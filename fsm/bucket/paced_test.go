package bucket

import (
	"testing"

	"pgregory.net/rapid"
)

// TestAdvanceByIsAdvanceOfAnotherTime: a bucket of a key with a time of its own goes
// the way of one without, and says another time.
func TestAdvanceByIsAdvanceOfAnotherTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := mustShape(t, drawReal(t))
		plain := drawUsed(t, s)
		paced := plain.Clone()
		for range rapid.IntRange(1, 5).Draw(t, "cuts") {
			pause := drawPause(t)
			// Its own time is never faster.
			elapsed := rapid.Int64Range(0, pause).Draw(t, "elapsed")
			paced.AdvanceBy(s, paced.Last()+Instant(pause), elapsed)
			plain.Advance(s, plain.Last()+Instant(elapsed))
		}
		if paced.Last() < plain.Last() {
			t.Fatalf("its time is %d, which is before %d", paced.Last(), plain.Last())
		}
		plain.last = paced.last
		if !paced.Equal(&plain) {
			t.Fatalf("got %+v, want %+v", paced.State(), plain.State())
		}
	})
}

func TestAdvanceByBackwardsDoesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := mustShape(t, drawReal(t))
		b := drawUsed(t, s)
		was := b.Clone()
		b.AdvanceBy(s, b.Last()-Instant(rapid.Int64Range(0, 1000).Draw(t, "back")), 1000)
		if !b.Equal(&was) {
			t.Fatalf("back in time: got %+v, want %+v", b.State(), was.State())
		}
		b.AdvanceBy(s, b.Last()+1, -1)
		was.last++
		if !b.Equal(&was) {
			t.Fatalf("by less than nothing: got %+v, want %+v", b.State(), was.State())
		}
	})
}

// TestNeedsIsExact: so many nanoseconds of refill are enough, one less is not.
func TestNeedsIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := mustShape(t, drawReal(t))
		b := drawUsed(t, s)
		class := rapid.IntRange(0, s.Classes()-1).Draw(t, "class")
		n := rapid.Int64Range(0, s.Burst()+1).Draw(t, "n")
		refill, never := b.Needs(s, class, n, 0)
		if never {
			if n >= 1 && n <= s.EffectiveBurst(class) && !s.IsZero() {
				t.Fatalf("%d of %d: never", n, s.EffectiveBurst(class))
			}
			return
		}
		ahead := b.Clone()
		ahead.AdvanceBy(s, b.Last()+Instant(refill), refill)
		if _, ok := ahead.Take(s, class, n); !ok {
			t.Fatalf("%d after %d ns of refill: refused", n, refill)
		}
		if refill == 0 {
			return
		}
		ahead = b.Clone()
		ahead.AdvanceBy(s, b.Last()+Instant(refill), refill-1)
		if _, ok := ahead.Take(s, class, n); ok {
			t.Fatalf("%d after %d ns of refill: granted, needs %d", n, refill-1, refill)
		}
	})
}
