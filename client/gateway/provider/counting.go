package provider

import (
	"errors"
	"fmt"
	"math/bits"
	"strings"
	"time"
)

// The dimensions that providers count. They are what the dimensions of limits
// should be called.
const (
	Requests     = "requests"
	Tokens       = "tokens"
	InputTokens  = "input_tokens"
	OutputTokens = "output_tokens"
)

// Counting is what a provider counts of a request.
type Counting struct {
	// Counts are charged together: the tightest of them sets the pace.
	Counts []Count
	// MaxAssumed: a request that does not bound its output counts as if it asked for as
	// much as the model can give.
	MaxAssumed bool
	// FailedCount: a request that was refused has used one request all the same.
	FailedCount bool
	// CacheReserved: what a cache has counts whole until the use is known.
	CacheReserved bool
	// Burndown has the models whose output counts more in the end. The first one that fits
	// decides.
	Burndown []Burndown
	Seen     Seen
}

// Burndown is how often a token counts that some models put out, once it is known how many
// there are. Before that each counts once.
type Burndown struct {
	// Models are parts of names.
	Models []string
	// Times is from 1 to 100.
	Times int64
	Seen  Seen
}

func (b *Burndown) check() error {
	switch {
	case len(b.Models) == 0:
		return errors.New("models: missing")
	case b.Times < 1 || b.Times > weightMax/Whole:
		return fmt.Errorf("times: %d: must be from 1 to %d", b.Times, int64(weightMax/Whole))
	}
	return b.Seen.check()
}

// burns is how often a token counts that the model puts out.
func (c *Counting) burns(model string) int64 {
	for i := range c.Burndown {
		for _, part := range c.Burndown[i].Models {
			if strings.Contains(model, part) {
				return c.Burndown[i].Times
			}
		}
	}
	return 1
}

// Count is one dimension. It is a value: for a model that counts otherwise, change
// a copy.
type Count struct {
	Dimension string
	Estimate  Estimate
	Settle    Settle
	// CacheReadPPM, CacheWritePPM and OutputPPM are what a token read from a cache,
	// written to one, or put out counts, in parts per million of a token. Each is from
	// 0 to a hundred times whole. Input that no cache has counts whole.
	CacheReadPPM, CacheWritePPM, OutputPPM int64
	// Refill is how it comes back, which says what a burst may be.
	Refill Refill
	// Window is how short the time may be over which it is enforced. 0: a minute.
	Window time.Duration
}

// Whole is one in parts per million.
const Whole = 1_000_000

// weightMax is the most that a token may count.
const weightMax = 100 * Whole

// Estimate is what is charged before anything is known of the answer.
type Estimate int

// The estimates.
const (
	// One: it counts requests.
	One Estimate = iota + 1
	// Prompt: the input alone.
	Prompt
	// PromptAndMax: the input and all output that was asked for, for every choice.
	PromptAndMax
	// MaxOnly: all output that was asked for, and no input.
	MaxOnly
	// LargerOfBoth: the input or all output that was asked for, whichever is more.
	LargerOfBoth
	// AsProduced: the output is counted as it comes. One token is charged before, so
	// that there is a charge that can be settled.
	AsProduced
)

// Settle is what becomes of an estimate when the use is known.
type Settle int

// The policies.
const (
	// Actual: the use replaces the estimate.
	Actual Settle = iota + 1
	// Kept: the provider counts by the estimate, whatever is used.
	Kept
)

// Refill is how a limit comes back.
type Refill int

// The refills.
const (
	// Continuous: a little all the time, up to the limit.
	Continuous Refill = iota + 1
	// EachMinute: all of it when the next minute begins.
	EachMinute
)

// Work is a request before it is sent, as far as its cost depends on it. Package estimate
// reads Input, MaxOutput and Choices from it.
type Work struct {
	// Input is its prompt in tokens, as estimated, cached or not.
	Input int64
	// CacheRead is what of Input a cache is known to have. 0 where that is not known.
	CacheRead int64
	// MaxOutput is the most output that it asks for, in tokens; 0 or less: it does not say.
	MaxOutput int64
	// ModelMax is the most that its model puts out, in tokens; 0: not known, and a
	// request that does not say is charged its input alone.
	ModelMax int64
	// Choices is how many answers it asks for; 0 is 1.
	Choices int64
}

// Charge is what to ask for before a request is sent, by dimension, each from 1 to
// 2^53. Negative numbers count as 0.
func (c *Counting) Charge(w Work) map[string]int64 {
	output := max(0, w.MaxOutput)
	if output == 0 && c.MaxAssumed {
		output = max(0, w.ModelMax)
	}
	output = times(output, min(max(1, w.Choices), countMax/Whole)*Whole)
	prompt := max(0, w.Input)
	cached := min(max(0, w.CacheRead), prompt)
	if c.CacheReserved {
		cached = 0
	}
	amounts := make(map[string]int64, len(c.Counts))
	for i := range c.Counts {
		n := &c.Counts[i]
		input := sum(prompt-cached, times(cached, n.CacheReadPPM))
		generated := times(output, n.OutputPPM)
		var amount int64
		switch n.Estimate {
		case Prompt:
			amount = input
		case PromptAndMax:
			amount = sum(input, generated)
		case MaxOnly:
			amount = generated
		case LargerOfBoth:
			amount = max(input, generated)
		default:
		}
		amounts[n.Dimension] = max(1, amount)
	}
	return amounts
}

// Usage is what a request has used, in tokens. Providers differ in what they call
// input: OpenAI's prompt_tokens include what a cache had, Anthropic's input_tokens
// do not. Package spent reads it from answers.
type Usage struct {
	// Fresh is what of the input no cache had to do with, CacheRead and CacheWrite the rest.
	Fresh, CacheRead, CacheWrite int64
	Output                       int64
	// Refused: the provider has not worked on it.
	Refused bool
	// Model is what was asked, where some count otherwise (Counting.Burndown).
	Model string
}

// Settle is what a request is to be settled with, by dimension, each from 0 to 2^53.
// A dimension that is not in it stays as it was charged.
func (c *Counting) Settle(u Usage) map[string]int64 {
	amounts := make(map[string]int64, len(c.Counts))
	u.Output = times(max(0, u.Output), c.burns(u.Model)*Whole)
	for i := range c.Counts {
		n := &c.Counts[i]
		switch {
		case n.Estimate == One:
			if u.Refused && !c.FailedCount {
				amounts[n.Dimension] = 0
			}
		case u.Refused:
			amounts[n.Dimension] = 0
		case n.Settle == Actual:
			amounts[n.Dimension] = n.used(u)
		}
	}
	return amounts
}

func (n *Count) used(u Usage) int64 {
	input := sum(sum(max(0, u.Fresh), times(max(0, u.CacheRead), n.CacheReadPPM)),
		times(max(0, u.CacheWrite), n.CacheWritePPM))
	output := times(max(0, u.Output), n.OutputPPM)
	switch n.Estimate {
	case Prompt:
		return input
	case MaxOnly, AsProduced:
		return output
	case LargerOfBoth:
		return max(input, output)
	default:
		return sum(input, output)
	}
}

// times is n·ppm, rounded up, at most countMax. Both are not negative.
func times(n, ppm int64) int64 {
	high, low := bits.Mul64(uint64(n), uint64(ppm))
	if high >= Whole {
		return countMax
	}
	whole, rest := bits.Div64(high, low, Whole)
	if rest > 0 {
		whole++
	}
	return int64(min(whole, countMax))
}

// sum is a+b, at most countMax. Both are not negative.
func sum(a, b int64) int64 {
	return min(min(a, countMax)+min(b, countMax), countMax)
}

func (n *Count) check() error {
	switch {
	case n.Dimension == "":
		return errors.New("dimension: missing")
	case n.Estimate < One || n.Estimate > AsProduced:
		return fmt.Errorf("estimate: %d: must be from %d to %d", n.Estimate, One, AsProduced)
	case n.Settle < Actual || n.Settle > Kept:
		return fmt.Errorf("settle: %d: must be from %d to %d", n.Settle, Actual, Kept)
	case n.Refill < Continuous || n.Refill > EachMinute:
		return fmt.Errorf("refill: %d: must be from %d to %d", n.Refill, Continuous, EachMinute)
	case n.Window < 0 || n.Window > time.Minute:
		return fmt.Errorf("window: %s: must be from 0s to 1m", n.Window)
	}
	for _, weight := range []int64{n.CacheReadPPM, n.CacheWritePPM, n.OutputPPM} {
		if weight < 0 || weight > weightMax {
			return fmt.Errorf("weight: %d ppm: must be from 0 to %d", weight, int64(weightMax))
		}
	}
	return nil
}
