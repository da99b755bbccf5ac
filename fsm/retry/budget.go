// Package retry decides whether a client has spent its retry budget.
//
// The rule: an attempt above a maximum is refused, and so is everything of a
// client whose retries are more than a fraction of its requests, once it has
// sent enough of them in the window. Whole numbers, compared by multiplying
// crosswise, so that exactly the fraction passes and the next one doesn't
// (S1-20).
//
// Beside it stands Tokens, the other common form of a retry budget: a balance
// from which a retry is paid and to which a success adds. A process uses it for
// its own retries.
//
// The package is pure: no clock, no lock, no goroutine.
package retry

import (
	"math"
	"math/bits"
	"time"

	"github.com/quorlease/quorlease/fsm/window"
)

// Whole is 100 % in the unit of fractions, hundredths of a percent.
const Whole = 10_000

// Rule is one retry budget.
type Rule struct {
	// MaxRetries is the highest attempt that passes. The first attempt of a piece
	// of work is 0, so it is also how many retries one may have (S1-19).
	MaxRetries uint32
	// MaxFraction is the largest fraction of requests that may be retries, in
	// hundredths of a percent, 0 to Whole−1. From Whole on it refuses nothing.
	MaxFraction int64
	// MinRequests is how many requests have to be exceeded before the fraction
	// counts (S1-22).
	MinRequests int64
	// Window is over how much time requests are counted, a multiple of
	// window.Slices nanoseconds.
	Window time.Duration
	// RetryAfter is what a refusal tells the client to wait.
	RetryAfter time.Duration
	// MinRetries in MinInterval are retries that the client may make whatever the
	// fraction says, all nodes and all its processes together: a floor. It is
	// counted over the whole window, 10 in a second with a window of 300 s are
	// 3,000 wherever in it they lie. 0 retries, or an interval below 1 ns: none.
	MinRetries  int64
	MinInterval time.Duration
	// Scope is what a client over its budget loses.
	Scope Scope
}

// Scope is what a client over its budget loses.
type Scope int

// The scopes.
const (
	// Client: everything, first attempts too. Whoever fails too fast is stopped.
	Client Scope = iota
	// Retries: its retries alone.
	Retries
)

// String is the scope as the limits file spells it.
func (s Scope) String() string {
	if s == Retries {
		return "retries"
	}
	return "client"
}

// Floor is how many retries the floor allows in a window, rounded down, or
// math.MaxInt64 where that does not fit.
func (r Rule) Floor() int64 {
	if r.MinRetries <= 0 || r.MinInterval <= 0 {
		return 0
	}
	hi, lo := product(r.MinRetries, int64(r.Window))
	return quotient(hi, lo, uint64(r.MinInterval))
}

// Verdict is what a rule says of one request.
type Verdict int

// The verdicts.
const (
	// Admit lets the request through; the caller records it.
	Admit Verdict = iota
	// Attempts refuses it because its own attempt is too high.
	Attempts
	// Budget refuses it because the client has too many retries in the window.
	Budget
)

// String is the verdict in lower case.
func (v Verdict) String() string {
	switch v {
	case Admit:
		return "admit"
	case Attempts:
		return "attempts"
	case Budget:
		return "budget"
	default:
		return "unknown"
	}
}

// Decide says whether a request passes. total and retries are what the window
// has recorded before it; a refused request is not recorded, so that refusing
// does not itself keep a client over its budget.
func (r Rule) Decide(total, retries int64, attempt uint32) Verdict {
	if attempt > r.MaxRetries {
		return Attempts
	}
	if (attempt > 0 || r.Scope == Client) && r.Over(total, retries) {
		return Budget
	}
	return Admit
}

// Over says that the client has spent its budget: retries ÷ total > MaxFraction ÷
// Whole, once total > MinRequests, and no fewer retries than the floor allows.
func (r Rule) Over(total, retries int64) bool {
	return r.Above(total, retries, r.MaxFraction) && retries >= r.Floor()
}

// Above says whether more than fraction of the requests were retries, in
// hundredths of a percent, strictly, once there are more than MinRequests: the
// rule's own fraction, or one that warns before it.
func (r Rule) Above(total, retries, fraction int64) bool {
	if total <= r.MinRequests {
		return false
	}
	leftHi, leftLo := product(retries, Whole)
	rightHi, rightLo := product(total, fraction)
	return leftHi > rightHi || leftHi == rightHi && leftLo > rightLo
}

// Headroom is how many retries in a row the rule would still admit, if nothing
// else came: 0 where it refuses already. Admitted retries count against it and
// first attempts widen it. It is math.MaxInt64 where there is no end.
//
// Retry number j+1 passes while total + j ≤ MinRequests, or while
// (retries + j) × Whole ≤ MaxFraction × (total + j), or while retries + j is
// below the floor; each holds up to some j and never again, so that the largest
// of the three ends is the end.
func (r Rule) Headroom(total, retries int64) int64 {
	if r.Over(total, retries) {
		return 0
	}
	if r.MaxFraction >= Whole {
		return math.MaxInt64
	}
	most := max(0, r.MinRequests-total, r.Floor()-retries-1)
	allowedHi, allowedLo := product(total, r.MaxFraction)
	usedHi, usedLo := product(retries, Whole)
	lo, borrow := bits.Sub64(allowedLo, usedLo, 0)
	hi, borrow := bits.Sub64(allowedHi, usedHi, borrow)
	if borrow == 0 {
		most = max(most, quotient(hi, lo, uint64(Whole-r.MaxFraction)))
	}
	if most == math.MaxInt64 {
		return most
	}
	return most + 1
}

// Part is one node's part of a headroom that nodes share: rounded up, because
// rounded down a small headroom would admit nothing at all (T49). Fewer than
// one node counts as one.
func Part(headroom int64, nodes int) int64 {
	if headroom <= 0 {
		return 0
	}
	n := int64(max(1, nodes))
	part := headroom / n
	if headroom%n > 0 {
		part++
	}
	return part
}

// FreesIn is how long it takes until the rule no longer refuses the client for
// its fraction, if nothing more is recorded: until enough slices have left the
// window. now is authority time in nanoseconds. It is 0 where the rule doesn't
// refuse now.
func (r Rule) FreesIn(now int64, counts *window.Counts) time.Duration {
	length := window.Length(r.Window)
	at := window.At(now, length)
	total, retries := counts.Sum(at)
	leaves := at
	counts.Walk(func(slice, ofTotal, ofRetries int64) {
		if slice <= at-window.Slices || !r.Over(total, retries) {
			return
		}
		total -= ofTotal
		retries -= ofRetries
		leaves = slice + window.Slices
	})
	if leaves == at {
		return 0
	}
	return time.Duration(leaves*int64(length) - now)
}

// product is a × b in 128 bits; negative counts as 0.
func product(a, b int64) (hi, lo uint64) {
	return bits.Mul64(uint64(max(0, a)), uint64(max(0, b)))
}

// quotient is (hi, lo) ÷ by rounded down, or math.MaxInt64 where that does not
// fit.
func quotient(hi, lo, by uint64) int64 {
	if hi >= by {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, by)
	return int64(min(q, math.MaxInt64))
}
