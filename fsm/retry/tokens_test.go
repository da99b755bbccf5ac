package retry

import (
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// tenth is a ratio of 0.1 and ten retries.
func tenth() TokenRule { return TokenRule{Cap: 100, Cost: 10, Refund: 1} }

// retries counts how many in a row are allowed, at most most.
func retriesNow(t *Tokens, now int64, r TokenRule, most int) int {
	for n := range most {
		if !t.Retry(now, r) {
			return n
		}
	}
	return most
}

func TestTokens(t *testing.T) {
	t.Parallel()
	t.Run("A16_successes_bring_retries_back", func(t *testing.T) {
		t.Parallel()
		var a, b Tokens
		if got := retriesNow(&a, 0, tenth(), 100); got != 10 {
			t.Fatalf("%d retries of a full balance, want 10", got)
		}
		for range 99 {
			a.Success(tenth())
		}
		if got := a.Left(tenth()); got != 9 {
			t.Errorf("%d retries left after 99 successes, want 9", got)
		}
		a.Success(tenth())
		if got := retriesNow(&a, 0, tenth(), 100); got != 10 {
			t.Errorf("%d retries after 100 successes, want 10", got)
		}
		if got := b.Left(tenth()); got != 10 {
			t.Errorf("another client has %d retries left, want 10", got)
		}
		for range 1000 {
			b.Success(tenth())
		}
		if got := b.Left(tenth()); got != 10 {
			t.Errorf("%d retries left of a full balance after successes, want 10", got)
		}
	})
	t.Run("A17_small_ratios_lose_nothing", func(t *testing.T) {
		t.Parallel()
		var one Tokens
		r := TokenRule{Cap: 1000, Cost: 100, Refund: 1}
		if !one.Retry(0, r) || one.Left(r) != 9 {
			t.Errorf("%d retries left after the first of ten, want 9", one.Left(r))
		}
	})
	t.Run("A17_the_floor_without_traffic", func(t *testing.T) {
		t.Parallel()
		var one Tokens
		r := TokenRule{Cap: 10, Cost: 10, MinRetries: 3, MinInterval: time.Second}
		if got := retriesNow(&one, 0, r, 100); got != 3 {
			t.Fatalf("%d retries without a single request, want the floor's 3", got)
		}
		wait, ok := one.FreesIn(0, r)
		if !ok || wait != 333_333_334 {
			t.Fatalf("frees in %v, %v, want a third of a second, rounded up", wait, ok)
		}
		if one.Retry(int64(wait)-1, r) || !one.Retry(int64(wait), r) {
			t.Error("the floor does not pay exactly when it said")
		}
	})
	t.Run("A17_ratio_0_and_no_floor_is_never", func(t *testing.T) {
		t.Parallel()
		var one Tokens
		r := TokenRule{Cap: 10, Cost: 1}
		if one.Retry(1<<60, r) || one.Left(r) != 0 {
			t.Error("a retry is allowed")
		}
		if _, ok := one.FreesIn(0, r); ok {
			t.Error("it says when it frees")
		}
	})
	t.Run("S3-25", func(t *testing.T) {
		t.Parallel()
		// The numbers of the best known SDK: 500 tokens, 5 a retry, 1 back.
		var one Tokens
		r := TokenRule{Cap: 500, Cost: 5, Refund: 1}
		if got := retriesNow(&one, 0, r, 1000); got != 100 {
			t.Fatalf("%d retries at once, want 100", got)
		}
		for range 4 {
			one.Success(r)
		}
		if one.Retry(0, r) {
			t.Error("four successes pay for a retry")
		}
		one.Success(r)
		if !one.Retry(0, r) || one.Retry(0, r) {
			t.Error("five successes don't pay for exactly one retry")
		}
	})
}

func TestTokenRulesThatCantBe(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]TokenRule{
		"A17_ratio_above_1":  {Cap: 10, Cost: 1, Refund: 2},
		"no cap":             {Cost: 1},
		"cap too large":      {Cap: TokensMax + 1, Cost: 1},
		"no cost":            {Cap: 1},
		"cost above the cap": {Cap: 1, Cost: 2},
		"negative refund":    {Cap: 1, Cost: 1, Refund: -1},
		"negative floor":     {Cap: 1, Cost: 1, MinRetries: -1},
		"floor too large":    {Cap: 1, Cost: 1, MinRetries: MinRetriesMax + 1, MinInterval: 1},
		"floor in no time":   {Cap: 1, Cost: 1, MinRetries: 1},
		"floor in two hours": {Cap: 1, Cost: 1, MinRetries: 1, MinInterval: 2 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if r.Validate() == nil {
				t.Errorf("%+v is valid", r)
			}
		})
	}
	if err := tenth().Validate(); err != nil {
		t.Error(err)
	}
}

// TestTokensAreExact follows a balance in rational numbers.
func TestTokensAreExact(t *testing.T) {
	t.Parallel()
	t.Run("A17", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			r := TokenRule{Cap: rapid.Int64Range(1, 200).Draw(t, "cap")}
			r.Cost = rapid.Int64Range(1, r.Cap).Draw(t, "cost")
			r.Refund = rapid.Int64Range(0, r.Cost).Draw(t, "refund")
			r.MinRetries = rapid.SampledFrom([]int64{0, 1, 3, MinRetriesMax}).Draw(t, "min_retries")
			r.MinInterval = rapid.SampledFrom([]time.Duration{1, 7, time.Second, MinIntervalMax}).Draw(t, "interval")
			if err := r.Validate(); err != nil {
				t.Fatal(err)
			}
			var one Tokens
			balance, floor, now := r.Cap, big.NewRat(r.MinRetries, 1), int64(0)
			for range rapid.IntRange(1, 100).Draw(t, "steps") {
				passed := rapid.OneOf(rapid.Int64Range(0, 10), rapid.Int64Range(0, int64(time.Hour))).Draw(t, "passed")
				now += passed
				floor.Add(floor, big.NewRat(passed, int64(r.MinInterval)).Mul(
					big.NewRat(passed, int64(r.MinInterval)), big.NewRat(r.MinRetries, 1)))
				if most := big.NewRat(r.MinRetries, 1); floor.Cmp(most) > 0 {
					floor = most
				}
				if rapid.Bool().Draw(t, "success") {
					one.Success(r)
					balance = min(r.Cap, balance+r.Refund)
					continue
				}
				want := true
				switch {
				case r.Refund > 0 && balance >= r.Cost:
					balance -= r.Cost
				case floor.Cmp(big.NewRat(1, 1)) >= 0:
					floor.Sub(floor, big.NewRat(1, 1))
				default:
					want = false
				}
				if got := one.Retry(now, r); got != want {
					t.Fatalf("retry at %d: %v, want %v, balance %d, floor %v, %+v", now, got, want, balance, floor, r)
				}
			}
		})
	})
}
