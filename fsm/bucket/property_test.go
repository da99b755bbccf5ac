package bucket

import (
	"math"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// drawn is a source of rapid's.
type drawn struct{ *rapid.T }

func (d drawn) upTo(what string, most int64) int64 {
	return rapid.Int64Range(0, most).Draw(d.T, what)
}

func TestOracleAgreesOnEveryHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { newHistory(t, drawn{t}).run(25) })
}

// drawReal draws a spec with the numbers of real limits.
func drawReal(t *rapid.T) Spec {
	spec := Spec{
		Amount: rapid.Int64Range(1, 2_000_000).Draw(t, "amount"),
		Interval: rapid.SampledFrom([]time.Duration{
			time.Second, 7 * time.Second, time.Minute, time.Hour, 24 * time.Hour,
		}).Draw(t, "interval"),
		Target:  rapid.SampledFrom([]int64{Whole, 9000, 7500, 3333}).Draw(t, "target"),
		MaxDebt: rapid.Int64Range(0, 300).Draw(t, "max_debt"),
	}
	shares, subBursts := int64(Whole), int64(0)
	for range rapid.IntRange(0, 4).Draw(t, "classes") {
		c := ClassSpec{Share: min(shares, rapid.SampledFrom([]int64{0, 1000, 2500, 5000, 6250}).Draw(t, "share"))}
		if c.Share > 0 {
			c.SubBurst = rapid.Int64Range(0, 30).Draw(t, "sub_burst")
		}
		shares -= c.Share
		subBursts += c.SubBurst
		spec.Classes = append(spec.Classes, c)
	}
	spec.Burst = subBursts + rapid.Int64Range(1, 100).Draw(t, "burst")
	if _, err := NewShape(spec); err != nil {
		// A slow rate with an odd target is refused where the burst is not tiny.
		spec.Interval = time.Second
	}
	return spec
}

// drawUsed is a bucket after a random past: some classes drained, some in debt,
// some half full, at a time that is no round number.
func drawUsed(t *rapid.T, s *Shape) Bucket {
	b := s.Full(Instant(rapid.Int64Range(0, math.MaxInt64/4).Draw(t, "start")))
	for range rapid.IntRange(0, 8).Draw(t, "operations") {
		disturb(t, s, &b)
		b.Advance(s, b.Last()+Instant(drawPause(t)))
	}
	return b
}

func drawClass(t *rapid.T, s *Shape) int { return rapid.IntRange(0, s.Classes()-1).Draw(t, "class") }

// drawPause is mostly short, in nanoseconds, and now and then years.
func drawPause(t *rapid.T) int64 {
	digits := rapid.IntRange(0, 17).Draw(t, "digits")
	most := int64(math.Pow10(digits))
	return rapid.Int64Range(0, most).Draw(t, "pause")
}

// disturb is one operation of somebody.
func disturb(t *rapid.T, s *Shape, b *Bucket) {
	class := drawClass(t, s)
	n := rapid.Int64Range(1, s.Burst()).Draw(t, "n")
	switch rapid.IntRange(0, 4).Draw(t, "operation") {
	case 0, 1:
		b.Take(s, class, min(n, b.Available(s, class)))
	case 2:
		b.Excess(s, class, n)
	case 3:
		b.Refund(s, class, n/2, rapid.Int64Range(0, n*s.unit).Draw(t, "took"))
	case 4:
		b.Lower(s, n)
	}
}

func TestT47AnySplitOfAnAdvanceIsTheSame(t *testing.T) {
	t.Run("T47", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			s := mustShape(t, drawReal(t))
			once := drawUsed(t, s)
			parts := once.Clone()
			end := once.Last()
			for range rapid.IntRange(1, 10).Draw(t, "cuts") {
				end += Instant(drawPause(t))
				parts.Advance(s, end)
			}
			once.Advance(s, end)
			if !once.Equal(&parts) {
				t.Fatalf("advanced once %+v, in parts %+v", once, parts)
			}
			requireInRange(t, &once, s)
		})
	})
}

// TestAdvanceTakesFewLeaps counts them: the cost of a leap over years has a
// bound. Every class has at most two breakpoints, its debt and its sub-bucket,
// and each costs a leap up to it and one nanosecond.
func TestAdvanceTakesFewLeaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := mustShape(t, drawReal(t))
		b := drawUsed(t, s)
		want := b.Clone()
		end := b.Last() + Instant(drawPause(t))
		want.Advance(s, end)
		if b.subs == nil && s.named {
			b.grow(s)
		}
		leaps, left := 0, uint64(end-b.last)
		for left > 0 && b.subs != nil {
			f := b.flow(s)
			left -= b.leap(s, f, min(left, f.steps))
			leaps++
		}
		if most := 4*s.Classes() + 1; leaps > most {
			t.Fatalf("%d leaps, want at most %d", leaps, most)
		}
		if b.last = end; b.subs != nil && b.free != want.free {
			t.Fatalf("counted %+v, advanced %+v", b, want)
		}
	})
}

// TestG1NetDebitsAreBounded adds up what every operation took and gave back,
// and compares every interval with burst + rate × length.
func TestG1NetDebitsAreBounded(t *testing.T) {
	type debit struct {
		at    Instant
		units *big.Int
	}
	t.Run("G1", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			s := mustShape(t, drawReal(t))
			b := drawUsed(t, s)
			var debits []debit
			for range rapid.IntRange(1, 30).Draw(t, "debits") {
				// Time goes back now and then, and that must not help.
				b.Advance(s, b.Last()+Instant(drawPause(t)%int64(10*time.Second))-Instant(time.Second))
				before := b.free + b.reserved()
				class := drawClass(t, s)
				n := rapid.Int64Range(1, s.EffectiveBurst(class)).Draw(t, "take")
				if _, ok := b.Take(s, class, n); ok {
					debits = append(debits, debit{b.Last(), times(num(n), s.unit)})
					continue
				}
				disturb(t, s, &b)
				debits = append(debits, debit{b.Last(), num(before - b.free - b.reserved())})
			}
			for i := range debits {
				all := num(0)
				for _, one := range debits[i:] {
					all = sum(all, one.units)
					bound := sum(num(s.full), times(num(s.total), int64(one.at-debits[i].at)))
					if all.Cmp(bound) > 0 {
						t.Fatalf("%v units debited from %d to %d, want at most %v", all, debits[i].at, one.at, bound)
					}
				}
			}
		})
	})
}

// TestG5GuaranteedShareIsNeverDenied lets one class spend what a bucket of its
// own with its share and its sub-burst would grant, while the others do what
// they like. It must never notice them.
func TestG5GuaranteedShareIsNeverDenied(t *testing.T) {
	t.Run("G5", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			spec := drawReal(t)
			spec.Classes = append(spec.Classes[:min(3, len(spec.Classes))], ClassSpec{})
			s := mustShape(t, spec)
			class := drawClass(t, s)
			own := s.classes[class]
			b := s.Full(0)
			guaranteed := own.room
			for range rapid.IntRange(1, 40).Draw(t, "steps") {
				pause := drawPause(t)
				b.Advance(s, b.Last()+Instant(pause))
				guaranteed = pour(guaranteed, own.weight, uint64(pause), own.room)
				if other := drawClass(t, s); other != class {
					n := rapid.Int64Range(1, s.Burst()).Draw(t, "n")
					if took, ok := b.Take(s, other, min(n, b.Available(s, other))); ok {
						b.Refund(s, other, rapid.Int64Range(0, n/2).Draw(t, "back"), took)
					}
					b.Excess(s, other, rapid.Int64Range(0, 20).Draw(t, "excess"))
				}
				n := rapid.Int64Range(0, guaranteed/s.unit).Draw(t, "guaranteed")
				if n == 0 {
					continue
				}
				took, ok := b.Take(s, class, n)
				if !ok {
					t.Fatalf("class %d is inside its guarantee with %d, but is refused by %+v", class, n, b)
				}
				back := rapid.Int64Range(0, n).Draw(t, "refund")
				b.Refund(s, class, back, took)
				guaranteed -= (n - back) * s.unit
			}
		})
	})
}

// TestG7RetryAfterIsExact waits exactly as told, and one millisecond less.
func TestG7RetryAfterIsExact(t *testing.T) {
	t.Run("G7", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			s := mustShape(t, drawReal(t))
			b := drawUsed(t, s)
			class := drawClass(t, s)
			n := rapid.Int64Range(1, s.EffectiveBurst(class)).Draw(t, "n")
			wait, isNever := b.RetryAfter(s, class, n)
			if isNever || wait < 0 || wait%time.Millisecond != 0 {
				t.Fatalf("retry after %v, never %v, want whole milliseconds", wait, isNever)
			}
			exact, early := b.Clone(), b.Clone()
			exact.Advance(s, b.Last()+Instant(wait))
			if _, ok := exact.Take(s, class, n); !ok {
				t.Fatalf("refused %d after waiting %v: %+v became %+v", n, wait, b, exact)
			}
			early.Advance(s, b.Last()+Instant(wait-time.Millisecond))
			if _, ok := early.Take(s, class, n); ok && wait > 0 {
				t.Fatalf("granted %d one millisecond before %v: %+v became %+v", n, wait, b, early)
			}
			// Polling in between, as a caller alone does, changes nothing.
			polled := b.Clone()
			for i := range Instant(5) {
				polled.Advance(s, b.Last()+Instant(wait)*i/4)
			}
			if _, ok := polled.Take(s, class, n); !ok {
				t.Fatalf("refused %d after polling for %v: %+v", n, wait, polled)
			}
		})
	})
}

// TestG6TheEffectiveBurstIsServed is the other half of a denial that says
// never: everything else is served in the end, and every debt is paid (T18).
func TestG6TheEffectiveBurstIsServed(t *testing.T) {
	t.Run("G6", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			s := mustShape(t, drawReal(t))
			b := drawUsed(t, s)
			for class := range s.Classes() {
				if _, isNever := b.RetryAfter(s, class, s.EffectiveBurst(class)); isNever {
					t.Fatalf("class %d is never served its effective burst of %d", class, s.EffectiveBurst(class))
				}
				if _, isNever := b.RetryAfter(s, class, s.EffectiveBurst(class)+1); !isNever {
					t.Fatalf("class %d is promised more than its effective burst", class)
				}
			}
			at, ok := b.FullAt(s)
			if !ok {
				t.Fatalf("%+v is never full", b)
			}
			full, almost := b.Clone(), b.Clone()
			full.Advance(s, at)
			if want := s.Full(at); !full.Equal(&want) {
				t.Fatalf("at %d: %+v, want %+v", at, full, want)
			}
			almost.Advance(s, at-1)
			if want := s.Full(at - 1); at > b.Last() && almost.Equal(&want) {
				t.Fatalf("full at %d already, not only at %d", at-1, at)
			}
		})
	})
}

func TestA01ShuffledStampsMintNothing(t *testing.T) {
	t.Run("A01", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			s := mustShape(t, rate(100, time.Second, 100))
			b := s.Full(0)
			granted, latest := int64(0), int64(0)
			for i := range rapid.Int64Range(1, 60).Draw(t, "acquires") {
				at := max(0, i*int64(time.Second)/3+rapid.Int64Range(-5e9, 5e9).Draw(t, "shift"))
				latest = max(latest, at)
				b.Advance(s, Instant(at))
				n := rapid.Int64Range(1, 100).Draw(t, "n")
				if _, ok := b.Take(s, 0, n); ok {
					granted += n
				}
				if granted*1e9 > 100*1e9+100*latest {
					t.Fatalf("granted %d by %d ns", granted, latest)
				}
			}
		})
	})
}
