package shares

import (
	"math"
	"math/bits"
	"slices"

	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/digest"
)

const (
	// Silence is the longest time between two stamps that is none of an outage: a leader
	// stamps each second, and an election takes less.
	Silence = bucket.Instant(3e9)
	// MaxOutages bounds those that keys may have to live through.
	MaxOutages = 8

	tagOutages = 15
)

// Outage is a time in which nobody stamped an entry: from one stamp to the next.
type Outage struct{ From, To bucket.Instant }

// Outages are those that keys of a limit may have to live through, in order. They must
// not be changed.
func (b *Book) Outages(limit string) []Outage { return b.outages[limit] }

// Promised are the limits of which some session may use something, in no particular
// order.
func (b *Book) Promised() []string {
	var limits []string
	// The order does not matter: it is the caller's business.
	for limit, p := range b.pools {
		if p.promised > 0 {
			limits = append(limits, limit)
		}
	}
	return limits
}

// Withhold makes keys of a limit live through an outage. The caller sees to it that there
// are at most MaxOutages.
func (b *Book) Withhold(limit string, o Outage) {
	b.setOutages(limit, append(slices.Clone(b.outages[limit]), o))
}

// Outlived forgets the outages of a limit: every key has lived through them.
func (b *Book) Outlived(limit string) { b.setOutages(limit, nil) }

func (b *Book) setOutages(limit string, outages []Outage) {
	b.sum += sumOutages(limit, outages) - sumOutages(limit, b.outages[limit])
	if len(outages) == 0 {
		delete(b.outages, limit)
		return
	}
	b.outages[limit] = outages
}

// Endure takes an outage in. What each session may have used of its limit is left to it.
// No session's time goes by: nobody could be heard of.
func (b *Book) Endure(o Outage) {
	// The order does not matter: each entry is changed by itself.
	for _, e := range slices.Collect(b.table.All()) {
		e = b.change(e)
		e.endure(o)
		b.changed(e)
	}
}

// part is so many millionths of n, which is not negative, rounded down.
func part(n, ppm int64) int64 {
	hi, lo := bits.Mul64(uint64(n), uint64(ppm))
	q, _ := bits.Div64(hi, lo, Whole)
	return int64(q)
}

// add is a + b, or as much as there can be. Neither is negative.
func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// Digest is that of the book.
func (b *Book) Digest() uint64 { return b.sum }

// Recount is the digest computed from every record anew.
func (b *Book) Recount() uint64 {
	sum := uint64(0)
	// A sum: the order of the map and the table does not matter.
	for limit, outages := range b.outages {
		sum += sumOutages(limit, outages)
	}
	for e := range b.table.All() {
		sum += e.sum()
	}
	return sum
}

func sumOutages(limit string, outages []Outage) uint64 {
	if len(outages) == 0 {
		return 0
	}
	sum := digest.New(tagOutages)
	sum.Text(limit)
	for _, o := range outages {
		sum.Int(int64(o.From))
		sum.Int(int64(o.To))
	}
	return sum.Value()
}
