package check

import (
	"fmt"
	"math/big"
	"slices"
	"time"
)

// Held is tokens of one bucket that a client may spend: from when it was answered until
// its lease ends, by one clock, in nanoseconds.
type Held struct {
	From, Until int64
	Tokens      int64
}

// Excess is the most by which what clients can have spent of a bucket in a stretch of
// time exceeded what it hands out in that stretch, burst + rate·d.
type Excess struct {
	// Tokens is that, rounded up; 0 where it was never exceeded.
	Tokens int64
	// Time is in what time the rate hands out as much, rounded up.
	Time time.Duration
}

// Spendable works out the most that clients can have spent of one bucket above
// burst + rate·d, in stretches of every length d, whatever each did with the leases that
// it held: every token counts at whatever moment of its lease is the worst. With G2 the
// bound of Excess.Time is the slack. The order of list is changed.
//
// Everything that was answered by the end of a stretch, and had not ended at its
// beginning, can have been spent in it. Stretches that matter begin where a lease ends
// or are a moment, and end where one is answered, so that the answers and ends are gone
// through once, in their order.
func Spendable(spec Spec, list []Held) Excess {
	unit := new(big.Int).Mul(big.NewInt(spec.Interval), big.NewInt(whole))
	perNano := new(big.Int).Mul(big.NewInt(spec.Amount), big.NewInt(spec.TargetBP))
	answers := slices.Clone(list)
	slices.SortFunc(answers, func(a, b Held) int { return compare(a.From, b.From) })
	slices.SortFunc(list, func(a, b Held) int { return compare(a.Until, b.Until) })
	// begins is the least of what had ended before a stretch begins, less the rate's part
	// up to there, over all moments so far; answered and ended count tokens.
	var begins, now, most, part big.Int
	var answered, ended int64
	at := func(tokens, moment int64) *big.Int {
		now.Mul(big.NewInt(tokens), unit)
		part.Mul(big.NewInt(moment), perNano)
		return now.Sub(&now, &part)
	}
	first, next := true, 0
	begin := func(moment int64) {
		if value := at(ended, moment); first || value.Cmp(&begins) < 0 {
			begins.Set(value)
			first = false
		}
	}
	for _, one := range answers {
		for next < len(list) && list[next].Until < one.From {
			begin(list[next].Until)
			ended += list[next].Tokens
			next++
		}
		begin(one.From)
		answered += one.Tokens
		if value := at(answered, one.From); value.Sub(value, &begins).Cmp(&most) > 0 {
			most.Set(value)
		}
	}
	return excess(&most, spec, unit, perNano)
}

// excess is what is above the burst.
func excess(most *big.Int, spec Spec, unit, perNano *big.Int) Excess {
	over := new(big.Int).Mul(big.NewInt(spec.Burst), unit)
	over.Sub(most, over)
	if over.Sign() <= 0 {
		return Excess{}
	}
	e := Excess{Tokens: roundUp(over, unit)}
	if e.Time = longest; perNano.Sign() > 0 {
		e.Time = time.Duration(roundUp(over, perNano))
	}
	return e
}

// longest stands for ever.
const longest = time.Duration(1<<63 - 1)

func roundUp(n, by *big.Int) int64 {
	var whole, rest big.Int
	whole.QuoRem(n, by, &rest)
	if rest.Sign() > 0 {
		whole.Add(&whole, big.NewInt(1))
	}
	if !whole.IsInt64() {
		return int64(longest)
	}
	return whole.Int64()
}

func compare(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// String is both.
func (e Excess) String() string {
	return fmt.Sprintf("%d tokens, which the rate hands out in %v", e.Tokens, e.Time.Round(time.Millisecond))
}
