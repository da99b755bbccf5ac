package block

import (
	"math"
	"sync/atomic"
	"time"
)

// TokensMax is the most tokens that a block may hold, the largest amount that
// one charge may have.
const TokensMax = 1 << 53

// closed is the balance of a block that was closed, and all below. Nothing else
// comes near it: excesses end at owedMax.
const (
	closed  = math.MinInt64 / 2
	owedMax = 1 << 60
)

// Life is how long the holder of a lease with this ttl may spend it, counted
// from before it first sent the request: a thousandth less, so that it has
// stopped before the authority thinks so although clocks drift.
func Life(ttl time.Duration) time.Duration {
	return max(0, ttl-ttl/1000)
}

// Block is one lease of tokens in the hands of its client. What is spent of it
// never exceeds what was granted, and nothing is spent after the life's end
// (G2): renewing a block is asking for another one, since a renewed lease would
// be spent for ever (T12).
//
// Safe for concurrent use.
type Block struct {
	id      string
	granted int64
	start   time.Duration
	end     time.Duration
	half    time.Duration
	low     int64

	_ [64]byte // What is written has a cache line of its own.

	// balance is granted minus used. It is negative when settled permits used more
	// than was left: that is owed, and charged when the lease is settled. One word
	// holds both, so that an excess and the block's closing can't miss each other.
	balance atomic.Int64

	_ [56]byte
}

// New returns the block of a lease of granted tokens, at most TokensMax. start
// is when the lease was first asked for on the holder's clock, and ttl what the
// answer said.
func New(id string, granted int64, start, ttl time.Duration) *Block {
	life := Life(ttl)
	b := &Block{
		id: id, granted: granted, start: start, end: start + life, half: start + life/2, low: (granted + 1) / 2,
	}
	b.balance.Store(granted)
	return b
}

// ID is the id of the lease.
func (b *Block) ID() string { return b.id }

// Granted is how many tokens the lease has, spent or not.
func (b *Block) Granted() int64 { return b.granted }

// Start is when the lease was first asked for.
func (b *Block) Start() time.Duration { return b.start }

// End is the first moment at which nothing may be spent any more.
func (b *Block) End() time.Duration { return b.end }

// Left is how many tokens may still be spent before the end: 0 of a block that
// is closed or owes.
func (b *Block) Left() int64 { return max(0, b.balance.Load()) }

// Spend takes n tokens, n ≥ 1, or nothing. The caller has used them then: what
// it estimated too high or too low it says with Settle. left is what was left after
// that: asking for it again would cost another processor's word once more.
func (b *Block) Spend(now time.Duration, n int64) (left int64, ok bool) {
	if now >= b.end {
		return 0, false
	}
	for {
		left = b.balance.Load()
		if left < n {
			return left, false
		}
		if b.balance.CompareAndSwap(left, left-n) {
			return left - n, true
		}
	}
}

// SpendUpTo takes as many tokens as there are, n at most, and returns how many.
func (b *Block) SpendUpTo(now time.Duration, n int64) int64 {
	if now >= b.end {
		return 0
	}
	for {
		left := b.balance.Load()
		took := min(left, n)
		if took <= 0 {
			return 0
		}
		if b.balance.CompareAndSwap(left, left-took) {
			return took
		}
	}
}

// Settle replaces an estimate of tokens that Spend took by what was used,
// both ≥ 0. A refund goes back and may be spent again before the end. An excess
// is taken from what is left, and what that can't cover is owed. It is false
// when the block was closed before: then nothing has changed, a refund is lost
// (its tokens count as used), and an excess is for the caller to place.
func (b *Block) Settle(estimate, used int64) bool {
	for {
		balance := b.balance.Load()
		if balance <= closed {
			return false
		}
		// No more than was granted, whoever settles what twice.
		next := min(max(balance+estimate-used, -owedMax), b.granted)
		if b.balance.CompareAndSwap(balance, next) {
			return true
		}
	}
}

// Close ends spending, whatever the time, and returns how many tokens were used:
// what the lease is to be settled with. It is more than granted where the block
// owes. first is true for the first caller; others are told 0.
func (b *Block) Close() (used int64, first bool) {
	balance := b.balance.Swap(closed)
	if balance <= closed {
		return 0, false
	}
	return b.granted - balance, true
}

// Closed says whether Close was called.
func (b *Block) Closed() bool { return b.balance.Load() <= closed }

// Used is how many tokens have been used so far, all of them once it is closed.
func (b *Block) Used() int64 {
	balance := b.balance.Load()
	if balance <= closed {
		return b.granted
	}
	return b.granted - balance
}

// Due says whether it is time to ask for the next block: less than half of the
// tokens, or of the life, is left.
func (b *Block) Due(now time.Duration) bool {
	return now >= b.half || b.IsLow(b.balance.Load())
}

// IsLow is the tokens' half of Due, where so many are left.
func (b *Block) IsLow(left int64) bool { return left < b.low }

// Half is when half of the life has passed.
func (b *Block) Half() time.Duration { return b.half }
