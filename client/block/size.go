package block

import (
	"math/bits"
	"time"
)

const (
	// Horizon is for how long a block should last at most at the recent demand:
	// twice what an election takes, of which half is left when the next block is
	// asked for.
	Horizon = 4 * time.Second
	// growth bounds how much larger the next block is, so that a burst of a few
	// milliseconds is not taken for a rate.
	growth = 4
	// share is which part of what the authority said is left one block may take at
	// most: other clients want some of it too.
	share = 2
	// pace is the shortest time over which demand is measured.
	pace = 10 * time.Millisecond
	// life is taken for the life of a lease before one was seen.
	life = 5 * time.Second
)

// Size says how many tokens to ask for: what the permits of the recent past
// would need over two lives of a lease, or Horizon where that is shorter. Only
// permits that were granted count: a demand that is refused is not a reason to
// hold more.
//
// It has one caller.
type Size struct {
	max int64

	// rate is the recent demand in tokens an hour, which keeps slow ones whole.
	rate     int64
	at       time.Duration
	life     time.Duration
	last     int64
	known    bool
	free     int64
	observed bool
}

// NewSize returns a size that never asks for more than most tokens, at least 1
// and at most TokensMax.
func NewSize(most int64) *Size {
	return &Size{max: min(max(1, most), TokensMax), life: life}
}

// Observe says that spent tokens were spent since it was called last, and that
// it is now. What is spent rises into the rate at once and fades by halves.
func (s *Size) Observe(now time.Duration, spent int64) {
	if !s.observed {
		s.observed, s.at = true, now
	}
	took := max(now-s.at, pace)
	s.at = now
	recent := perHour(spent, took)
	if recent >= s.rate {
		s.rate = recent
		return
	}
	// What was seen for longer than the horizon leaves nothing of the past.
	weight := int64(min(took, Horizon) / time.Millisecond)
	whole := int64(Horizon / time.Millisecond)
	hi, lo := bits.Mul64(uint64(s.rate-recent), uint64(weight))
	fade, _ := bits.Div64(hi, lo, uint64(whole))
	s.rate -= int64(fade)
}

// Granted says that n tokens were granted for ttl, and that free tokens were
// left in the bucket; below 0 is unknown.
func (s *Size) Granted(n, free int64, ttl time.Duration) {
	s.last, s.life = max(1, n), Life(ttl)
	s.known, s.free = free >= 0, max(0, free)
}

// Denied says that n tokens were refused. The next ask is smaller. How many were
// left then says nothing about when it is asked.
func (s *Size) Denied(n int64) {
	s.last = max(1, n/2/growth)
	s.known = false
}

// Next is how many tokens to ask for when somebody waits for need tokens, 0
// where nobody does: at least need and 1, and otherwise bounded by demand, by
// what the last block was, by what is left and by the maximum. A need above
// the maximum is asked for all the same: no smaller block could serve it.
func (s *Size) Next(need int64) int64 {
	want := over(s.rate, min(2*s.life, Horizon))
	want = min(want, s.max, growth*max(1, s.last))
	if s.known {
		want = min(want, s.free/share)
	}
	return max(want, need, 1)
}

// perHour is n tokens in took as tokens an hour, rounded up.
func perHour(n int64, took time.Duration) int64 {
	hi, lo := bits.Mul64(uint64(max(0, n)), uint64(time.Hour))
	if hi >= uint64(took) {
		return TokensMax
	}
	rate, rest := bits.Div64(hi, lo, uint64(took))
	if rest > 0 {
		rate++
	}
	return int64(min(rate, TokensMax))
}

// over is what rate tokens an hour come to in d, rounded up.
func over(rate int64, d time.Duration) int64 {
	hi, lo := bits.Mul64(uint64(rate), uint64(max(0, d)))
	n, rest := bits.Div64(hi, lo, uint64(time.Hour))
	if rest > 0 {
		n++
	}
	return int64(n)
}
