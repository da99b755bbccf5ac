package plan_test

import (
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/plan"
)

var intervals = []time.Duration{time.Second, 10 * time.Second, time.Minute, time.Hour}

func drawQuestion(t *rapid.T) plan.Question {
	q := plan.Question{
		Target:  rapid.SampledFrom([]int64{10_000, 9000, 7500, 6667, 3333, 1}).Draw(t, "target"),
		Live:    plan.Rate{Amount: rapid.Int64Range(0, 500).Draw(t, "live"), Interval: time.Minute},
		Tasks:   rapid.Int64Range(0, 100_000).Draw(t, "tasks"),
		Clients: rapid.Int64Range(0, 5_000).Draw(t, "clients"), Arrivals: rapid.Int64Range(1, 500).Draw(t, "arrivals"),
	}
	for i := range rapid.IntRange(1, 4).Draw(t, "dimensions") {
		cost := rapid.Int64Range(1, 5_000).Draw(t, "cost")
		q.Dimensions = append(q.Dimensions, plan.Dimension{
			Name: string(rune('a' + i)), Cost: cost,
			Rate: plan.Rate{
				Amount:   rapid.Int64Range(1, 2_000_000).Draw(t, "amount"),
				Interval: rapid.SampledFrom(intervals).Draw(t, "interval"),
			},
			Burst: cost * rapid.Int64Range(1, 200).Draw(t, "burst"),
		})
	}
	return q
}

// taking is how long one task takes in a dimension when all of so much of the rate
// is spent on tasks, in nanoseconds: the other way round than the plan, which has
// tasks a minute.
func taking(d plan.Dimension, target int64) *big.Rat {
	num := new(big.Int).Mul(big.NewInt(d.Cost*10_000), big.NewInt(int64(d.Rate.Interval)))
	return new(big.Rat).SetFrac(num, new(big.Int).Mul(big.NewInt(d.Rate.Amount), big.NewInt(target)))
}

// in is how many fit into a duration.
func in(long time.Duration, one *big.Rat) *big.Rat {
	return new(big.Rat).Quo(new(big.Rat).SetInt64(int64(long)), one)
}

func same(t *rapid.T, what string, got, want *big.Rat) {
	t.Helper()
	if got == nil || got.Cmp(want) != 0 {
		t.Fatalf("%s: %v, want %v", what, got, want)
	}
}

// TestIndependently: the same figures from how long a task takes and from what each
// bucket has been given until each second, for any limit.
func TestIndependently(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		q := drawQuestion(t)
		a, err := plan.Reckon(q)
		if err != nil {
			t.Fatal(err)
		}
		slowest := taking(q.Dimensions[0], 10_000)
		for _, d := range q.Dimensions {
			if one := taking(d, 10_000); one.Cmp(slowest) > 0 {
				slowest = one
			}
		}
		same(t, "binding", in(time.Minute, taking(q.Dimensions[a.Binding], 10_000)), in(time.Minute, slowest))
		live := big.NewRat(q.Live.Amount, 1)
		left := new(big.Rat).Sub(in(time.Minute, slowest), live)
		same(t, "headroom", a.Headroom, left)
		if left.Sign() > 0 && q.Clients > 0 {
			// So many in the window at this rate are all of them.
			same(t, "jitter", new(big.Rat).Mul(a.Jitter, left), big.NewRat(60*q.Clients, 1))
		} else if a.Jitter != nil {
			t.Fatalf("jitter %v without headroom", a.Jitter)
		}
		for _, p := range a.Paces {
			one := new(big.Rat).Mul(slowest, big.NewRat(10_000, p.Target))
			rest := new(big.Rat).Sub(in(time.Minute, one), live)
			same(t, "backfill", p.Backfill, rest)
			if rest.Sign() > 0 && q.Tasks > 0 {
				same(t, "eta", new(big.Rat).Mul(p.ETA, rest), big.NewRat(60*q.Tasks, 1))
			} else if p.ETA != nil {
				t.Fatalf("an ETA of %v with %v left", p.ETA, rest)
			}
		}
		watch(t, q, a.WhatIf[0])
		for _, c := range a.WhatIf[1:] {
			if c.Whole {
				continue
			}
			d := q.Dimensions[a.Binding]
			d.Burst = c.Capacity * d.Cost
			one := q
			one.Dimensions = []plan.Dimension{d}
			watch(t, one, c)
		}
	})
}

// watch compares a row with what every bucket has been given until each second:
// its burst and its refill pay for whole tasks.
func watch(t *rapid.T, q plan.Question, c plan.Cell) {
	t.Helper()
	for s, got := range append([]int64{c.Held}, c.After...) {
		held := int64(0)
		for _, d := range q.Dimensions {
			paid := new(big.Rat).Add(big.NewRat(d.Burst, d.Cost), in(time.Duration(s)*time.Second, taking(d, q.Target)))
			whole := new(big.Int).Quo(paid.Num(), paid.Denom())
			if n := q.Arrivals - min(whole.Int64(), q.Arrivals); n > held {
				held = n
			}
		}
		if got != held {
			t.Fatalf("capacity %d after %d s: %d held, want %d", c.Capacity, s, got, held)
		}
	}
	if c.Admitted+c.Held != q.Arrivals {
		t.Fatalf("%d admitted and %d held of %d", c.Admitted, c.Held, q.Arrivals)
	}
	// One moment before none waits, some do, and then none does.
	late := new(big.Rat)
	for _, d := range q.Dimensions {
		short := big.NewRat(q.Arrivals*d.Cost-d.Burst, d.Cost)
		if wait := short.Mul(short, taking(d, q.Target)); wait.Cmp(late) > 0 {
			late = wait
		}
	}
	same(t, "none waits after", new(big.Rat).Mul(c.Empty, big.NewRat(int64(time.Second), 1)), late)
}

// TestTheSameAsABucket: the rows of the table are what a bucket of fsm/bucket does
// when one task after the other takes its tokens, and each that is refused comes back
// after exactly as long as it was told.
func TestTheSameAsABucket(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cost := rapid.Int64Range(1, 3_000).Draw(t, "cost")
		// No more than one task in a millisecond, and room for two: whoever is told
		// whole milliseconds then loses nothing at the brim.
		d := plan.Dimension{
			Name: "tokens", Cost: cost, Burst: cost * rapid.Int64Range(2, 60).Draw(t, "burst"),
			Rate: plan.Rate{Amount: cost * rapid.Int64Range(1, 600).Draw(t, "tasks"), Interval: time.Minute},
		}
		d.Rate.Amount += rapid.Int64Range(0, cost-1).Draw(t, "more")
		q := plan.Question{
			Dimensions: []plan.Dimension{d}, Target: rapid.SampledFrom([]int64{10_000, 7500, 5000}).Draw(t, "target"),
			Arrivals: rapid.Int64Range(1, 100).Draw(t, "arrivals"),
		}
		a, err := plan.Reckon(q)
		if err != nil {
			t.Fatal(err)
		}
		shape, err := bucket.NewShape(bucket.Spec{
			Amount: d.Rate.Amount, Interval: d.Rate.Interval, Target: q.Target, Burst: d.Burst,
		})
		if err != nil {
			t.Fatal(err)
		}
		const second = bucket.Instant(time.Second)
		b, left := shape.Full(0), q.Arrivals
		now := second
		for s, want := range append([]int64{a.WhatIf[0].Held}, a.WhatIf[0].After...) {
			for end := second * bucket.Instant(1+s); left > 0 && now <= end; {
				b.Advance(shape, now)
				if _, ok := b.Take(shape, 0, cost); ok {
					left--
					continue
				}
				wait, never := b.RetryAfter(shape, 0, cost)
				if never {
					t.Fatalf("never, with %d left", left)
				}
				now += bucket.Instant(wait)
			}
			if left != want {
				t.Fatalf("after %d s the bucket holds %d back, the plan %d", s, left, want)
			}
		}
	})
}
