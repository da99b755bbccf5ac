package retry

import (
	"fmt"
	"time"
)

// Bounds of a TokenRule, so that no product of two of its fields overflows.
const (
	// TokensMax bounds Cap, and with it Cost and Refund.
	TokensMax = int64(1) << 53
	// MinRetriesMax and MinIntervalMax bound the floor.
	MinRetriesMax  = 1_000_000
	MinIntervalMax = time.Hour
)

// TokenRule is a retry budget in the form of a balance: a retry costs tokens, a
// success refunds some. Cost 5, Refund 1 and Cap 500 allow a hundred retries at
// once, and one more for every five successes.
type TokenRule struct {
	// Cap is the most tokens there are, and how many there are at first: 1 to
	// TokensMax.
	Cap int64
	// Cost is what a retry costs, 1 to Cap.
	Cost int64
	// Refund is what a success gives back, 0 to Cost: more would let every success
	// pay for more than one retry. With 0 nothing ever comes back, so that only the
	// floor allows retries, and none at all where there is no floor.
	Refund int64
	// MinRetries in MinInterval are allowed whatever the balance, 0 to MinRetriesMax
	// in 1 ns to MinIntervalMax. 0: none.
	MinRetries  int64
	MinInterval time.Duration
}

// Validate names the first field that can't be used.
func (r TokenRule) Validate() error {
	switch {
	case r.Cap < 1 || r.Cap > TokensMax:
		return fmt.Errorf("cap %d: must be from 1 to %d", r.Cap, TokensMax)
	case r.Cost < 1 || r.Cost > r.Cap:
		return fmt.Errorf("cost %d: must be from 1 to the cap, %d", r.Cost, r.Cap)
	case r.Refund < 0 || r.Refund > r.Cost:
		return fmt.Errorf("refund %d: must be from 0 to the cost of a retry, %d", r.Refund, r.Cost)
	case r.MinRetries < 0 || r.MinRetries > MinRetriesMax:
		return fmt.Errorf("min_retries %d: must be from 0 to %d", r.MinRetries, int64(MinRetriesMax))
	case r.MinRetries > 0 && (r.MinInterval < 1 || r.MinInterval > MinIntervalMax):
		return fmt.Errorf("min_retries interval %v: must be from 1ns to %v", r.MinInterval, MinIntervalMax)
	}
	return nil
}

// Tokens is the balance of one client under a valid TokenRule, always the same.
// The zero Tokens is full. Whole numbers only, so that nothing is lost however
// small a refund is. now is the caller's steady clock in nanoseconds.
type Tokens struct {
	// spent is what the balance lacks.
	spent int64
	// floor is what the floor lacks, a retry being MinInterval of it, at the time
	// at.
	floor, at int64
}

// Retry pays for one retry and says whether it may be made: from the balance, or
// else from the floor. A refusal changes nothing.
func (t *Tokens) Retry(now int64, r TokenRule) bool {
	if r.Refund > 0 && t.spent+r.Cost <= r.Cap {
		t.spent += r.Cost
		return true
	}
	if r.MinRetries == 0 {
		return false
	}
	t.earn(now, r)
	if t.floor+int64(r.MinInterval) > r.MinRetries*int64(r.MinInterval) {
		return false
	}
	t.floor += int64(r.MinInterval)
	return true
}

// earn brings the floor to now.
func (t *Tokens) earn(now int64, r TokenRule) {
	if now <= t.at {
		return
	}
	passed := now - t.at
	t.at = now
	if passed > t.floor/max(1, r.MinRetries) {
		t.floor = 0
		return
	}
	t.floor -= passed * r.MinRetries
}

// Success refunds what a request gives back that succeeded.
func (t *Tokens) Success(r TokenRule) { t.spent = max(0, t.spent-r.Refund) }

// Left is how many retries the balance pays for, the floor apart.
func (t *Tokens) Left(r TokenRule) int64 {
	if r.Refund == 0 {
		return 0
	}
	return (r.Cap - t.spent) / r.Cost
}

// FreesIn is how long it takes until the floor pays for a retry; ok is false
// where there is no floor, so that only successes help. It is 0 where the floor
// or the balance pays for one now.
func (t *Tokens) FreesIn(now int64, r TokenRule) (wait time.Duration, ok bool) {
	if t.Left(r) > 0 {
		return 0, true
	}
	if r.MinRetries == 0 {
		return 0, false
	}
	probe := *t
	probe.earn(now, r)
	lacks := probe.floor + int64(r.MinInterval) - r.MinRetries*int64(r.MinInterval)
	if lacks <= 0 {
		return 0, true
	}
	return time.Duration((lacks + r.MinRetries - 1) / r.MinRetries), true
}

// Full says that forgetting the balance would change nothing.
func (t *Tokens) Full(now int64, r TokenRule) bool {
	probe := *t
	probe.earn(now, r)
	return probe.spent == 0 && probe.floor == 0
}
