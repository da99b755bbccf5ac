// Package held remembers which buckets nodes have granted of from tokens that they held
// (escrow): any node may be asked for those, in an election too.
package held

import (
	"hash/maphash"
	"sync/atomic"
)

// sets times ways is how many buckets are remembered: 64 KiB. A bucket has a place in one
// set: some thousand buckets hardly ever displace one another. One that is displaced makes
// a detour to the leader.
const (
	sets = 1 << 12
	ways = 4
)

// sure is how many answers in a row have to come from the log until a bucket is taken for
// one of which nodes hold nothing. A single one says little: a node that has just begun, or
// has run out, gives it while others hold enough. It fills the lowest bits of a mark.
const sure = 3

// Book is what is remembered. It may forget, and take one bucket for another once in a
// billion: what it says decides who is asked and nothing else. It takes no lock and is
// safe for concurrent use. Make one with New.
type Book struct {
	seed maphash.Seed
	sets [sets][ways]atomic.Uint32
}

// New remembers nothing.
func New() *Book { return &Book{seed: maphash.MakeSeed()} }

// place is where a bucket of a limit and a key may be remembered, and as what.
func (b *Book) place(limit, key string) (set *[ways]atomic.Uint32, mark uint32) {
	const prime = 0x9e3779b97f4a7c15
	sum := maphash.String(b.seed, limit)*prime ^ maphash.String(b.seed, key)
	sum *= prime
	return &b.sets[sum%sets], uint32(sum>>32) &^ sure
}

// Has says whether a bucket was held by the last answers that were noted of it.
func (b *Book) Has(limit, key string) bool {
	set, mark := b.place(limit, key)
	for i := range set {
		if known := set[i].Load(); known&^sure == mark && known&sure > 0 {
			return true
		}
	}
	return false
}

// Note notes whether an answer about a bucket came from tokens that a node held.
func (b *Book) Note(limit, key string, held bool) {
	set, mark := b.place(limit, key)
	free := int(mark>>2) % ways
	for i := range set {
		switch known := set[i].Load(); {
		case known&sure == 0:
			free = i
		case known&^sure != mark:
		case held && known&sure < sure:
			set[i].Store(mark | sure)
			return
		case !held:
			set[i].CompareAndSwap(known, known-1)
			return
		default:
			return
		}
	}
	if held {
		set[free].Store(mark | sure)
	}
}
