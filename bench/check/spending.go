package check

import (
	"math"
	"math/big"
	"time"
)

// driftBP is by how much, in hundredths of a percent, the clock of a client may be
// slower than the authority's: a thousandth.
const driftBP = 10

// Spending is what clients were granted or spent of each key of one limit, by
// their own clock.
type Spending struct {
	Limit, Dimension string
	// Amount tokens an Interval, after target, and Burst.
	Amount   int64
	Interval time.Duration
	Burst    int64
	// Slot is how exact the times are.
	Slot time.Duration
	// Keys holds the tokens of each slot, one row a key.
	Keys []Row
}

// Row is one key's tokens by slot, from the beginning of the run.
type Row struct {
	Key    string
	Tokens []uint32
}

// Outside holds what clients saw to the bound: of every key, in every window of
// length d, at most burst + rate·(d + slack). The slots make windows shorter than
// they were, and clocks drift: a slot and a thousandth are added.
//
// With the longest time that an answer took as the slack it is G1 from outside:
// what was granted in a window was debited in it or at most that much before.
// With the limit's own slack it is G2.
func (s *Spending) Outside(slack time.Duration) Verdict {
	verdict := newVerdict()
	spec := Spec{Amount: s.Amount, Interval: int64(s.Interval), TargetBP: whole + driftBP}
	spec.Burst = add(s.Burst, tokensIn(s.Amount, s.Interval, slack+s.Slot))
	for _, row := range s.Keys {
		b := newBudget(spec, 0)
		name := Bucket{Limit: s.Limit, Key: row.Key, Dimension: s.Dimension}
		seen := false
		for i, tokens := range row.Tokens {
			if tokens == 0 {
				continue
			}
			seen = true
			now := int64(i) * int64(s.Slot)
			b.advance(now)
			verdict.took(b, name, int64(tokens), now)
		}
		if seen {
			verdict.Buckets++
		}
	}
	return verdict
}

// Tokens is what it hands out in d, rounded up.
func (s Spec) Tokens(d time.Duration) int64 {
	return tokensIn(s.Amount, time.Duration(s.Interval), d)
}

// tokensIn is what a rate hands out in d, rounded up.
func tokensIn(amount int64, interval, d time.Duration) int64 {
	var tokens big.Int
	tokens.Mul(big.NewInt(amount), big.NewInt(int64(d)))
	tokens.Add(&tokens, big.NewInt(int64(interval)-1))
	tokens.Div(&tokens, big.NewInt(int64(interval)))
	if !tokens.IsInt64() {
		return math.MaxInt64
	}
	return tokens.Int64()
}

func add(a, b int64) int64 { return a + min(b, math.MaxInt64-a) }
