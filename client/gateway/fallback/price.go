package fallback

import (
	"math/bits"
	"time"
)

// Cost is the dimension of money: millionths of the unit that prices are written in.
const Cost = "cost"

// Attribute is what a call of a fallback says beside the attributes of all calls: the
// deployment that it stands in for. Limits that match it count fallbacks alone.
const Attribute = "fallback"

// PriceMax is the highest price, and amountMax the most money that is counted at once. A
// limit takes no larger amount.
const (
	PriceMax  = 1_000_000_000_000
	amountMax = 1 << 53
)

// million is how many tokens a price is for.
const million = 1_000_000

// Price is what a million tokens cost, in millionths of the unit of money, each 0 to
// PriceMax: 2.50 a million tokens is 2,500,000.
type Price struct{ Input, Output int64 }

// Of is what so many tokens cost, in millionths of the unit of money, rounded up and at most
// 2^53. Less than no tokens are none.
func (p Price) Of(input, output int64) int64 {
	return min(times(input, p.Input)+times(output, p.Output), amountMax)
}

// times is n tokens at a price for a million, rounded up, at most amountMax.
func times(n, price int64) int64 {
	high, low := bits.Mul64(uint64(max(0, n)), uint64(max(0, price)))
	if high >= million {
		return amountMax
	}
	whole, rest := bits.Div64(high, low, million)
	if rest > 0 {
		whole++
	}
	return int64(min(whole, amountMax))
}

// Model is what a deployment costs, how soon it answers, and what stands in for it.
type Model struct {
	// Price is nil where it is not known: nothing that it uses is counted as money.
	Price *Price
	// Latency is how long an answer takes usually, up to LatencyMax. 0: not known.
	Latency time.Duration
	// To are the deployments that stand in, in the order in which they are asked, at most
	// targetsMax. Their own are not looked at.
	To []Target
}

// Target is a deployment that stands in for another one.
type Target struct {
	// Deployment is its name, and Model what it is asked for. Empty: what the request says.
	Deployment, Model string
}

// Most is what a request costs at most, as far as its bounds are known: of input tokens, the
// output that it asks for or else the most that the model puts out, and as many choices.
func (p Price) Most(input, asked, outputMax, choices int64) int64 {
	output := asked
	if output <= 0 {
		output = outputMax
	}
	return p.Of(input, min(max(0, output), amountMax/choicesMax)*min(max(1, choices), choicesMax))
}

// choicesMax bounds how many answers one request is counted for.
const choicesMax = 1 << 10
