package fallback

import (
	"fmt"
	"math/bits"
	"sync"
	"time"
)

// whole is all of it, in hundredths of a percent.
const whole = 10_000

// shareDefault is a tenth.
const shareDefault = 1_000

// Bound is how much of a day's money may go to fallbacks.
type Bound struct {
	// ShareBP is which part of it, in hundredths of a percent, up to 10,000. Default 1,000, a
	// tenth. -1: none. The day is the present one in UTC, or the last one while that had more.
	ShareBP int
	// Free is what may go to them each day whatever the share is, 0 to 2^53 millionths of the
	// unit of money.
	Free int64
}

// Validate says what is out of range. It begins with the field.
func (b Bound) Validate() error {
	switch {
	case b.ShareBP < -1 || b.ShareBP > whole:
		return fmt.Errorf("share %d: must be from 0 to %d hundredths of a percent", b.ShareBP, whole)
	case b.Free < 0 || b.Free > amountMax:
		return fmt.Errorf("free %d: must be from 0 to %d", b.Free, int64(amountMax))
	}
	return nil
}

func (b Bound) share() uint64 {
	switch {
	case b.ShareBP == 0:
		return shareDefault
	case b.ShareBP < 0:
		return 0
	}
	return uint64(min(b.ShareBP, whole))
}

// allows says whether so much may go to fallbacks of a day on which first went to others.
// f/(f+first) <= share is (whole-share)·f <= share·first, without a division.
func (b Bound) allows(f, first int64) bool {
	if f <= b.Free {
		return true
	}
	share := b.share()
	leftHigh, left := bits.Mul64(whole-share, uint64(f))
	rightHigh, right := bits.Mul64(share, uint64(first))
	return leftHigh < rightHigh || leftHigh == rightHigh && left <= right
}

// Book is what a gateway has spent this day and the last one, in UTC. It is safe for
// concurrent use. The zero Book is ready.
type Book struct {
	mu sync.Mutex
	// day is the present one, in days since 1970. It never goes back.
	day           int64 // guarded by mu
	today, before ledger
	stats         Stats
}

// ledger is one day's.
type ledger struct{ first, fallback, held int64 }

// Stats are what a Book has counted since it was made.
type Stats struct {
	// First is what was spent on the models that were asked for, and Fallback on those that
	// stood in, in millionths of the unit of money. Held is what the latter may still cost.
	First, Fallback uint64
	Held            int64
	// Answered counts requests that a fallback has answered, Failed those that it did not
	// answer, Slow fallbacks that were passed over because waiting is sooner, and Short those
	// for which the share had nothing left.
	Answered, Failed, Slow, Short uint64
}

// Hold is money that is set aside for one call of a fallback. It is safe for concurrent use.
type Hold struct {
	book   *Book
	day    int64
	amount int64
	done   bool // guarded by the book's mutex
}

// Reserve sets money aside for a call that costs at most so much. It is false where the bound
// has no room for it: nothing is set aside then. A call that costs more after all has
// overdrawn, and so much more has to be spent on others before the next one.
func (b *Book) Reserve(now time.Time, bound Bound, amount int64) (*Hold, bool) {
	amount = clamp(amount)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.turnLocked(now)
	if !bound.allows(add(add(b.today.fallback, b.today.held), amount), max(b.today.first, b.before.first)) {
		b.stats.Short++
		return nil, false
	}
	b.today.held += amount
	return &Hold{book: b, day: b.day, amount: amount}, true
}

// Spent counts what a call has cost: of a fallback with what was set aside for it, and of
// others with nil. Of a Hold the first call counts.
func (b *Book) Spent(now time.Time, h *Hold, cost int64) {
	cost = clamp(cost)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.turnLocked(now)
	if h == nil {
		b.today.first = add(b.today.first, cost)
		b.stats.First += uint64(cost)
		return
	}
	if h.done {
		return
	}
	h.done = true
	b.stats.Fallback += uint64(cost)
	// What began yesterday is yesterday's.
	var day *ledger
	switch h.day {
	case b.day:
		day = &b.today
	case b.day - 1:
		day = &b.before
	default:
		return
	}
	day.held -= h.amount
	day.fallback = add(day.fallback, cost)
}

// Keep counts all that was set aside: nobody knows what the call has used.
func (h *Hold) Keep(now time.Time) {
	if h != nil {
		h.book.Spent(now, h, h.amount)
	}
}

// Ended counts how a request of a fallback has ended, and gives back what was set aside and
// was not spent.
func (h *Hold) Ended(now time.Time, answered bool) {
	h.book.Spent(now, h, 0)
	h.book.mu.Lock()
	defer h.book.mu.Unlock()
	if answered {
		h.book.stats.Answered++
	} else {
		h.book.stats.Failed++
	}
}

// IsSooner says whether another model answers a call in trouble before its own would that has to
// be waited for, and counts where it does not.
func (b *Book) IsSooner(t Trouble, own, other *Model) bool {
	if t.IsSooner(own.Latency, other.Latency) {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stats.Slow++
	return false
}

// Stats are the figures now.
func (b *Book) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.stats
	s.Held = b.today.held + b.before.held
	return s
}

// turnLocked begins a new day where one has.
func (b *Book) turnLocked(now time.Time) {
	day := now.Unix() / int64((24 * time.Hour).Seconds())
	switch {
	case day <= b.day:
		return
	case day == b.day+1:
		b.before = b.today
	default:
		b.before = ledger{}
	}
	b.day, b.today = day, ledger{}
}

func clamp(n int64) int64 { return min(max(0, n), amountMax) }

// add is a+b, neither of them negative, at most what a day's money is counted to.
func add(a, b int64) int64 { return min(a+b, 1<<61) }
