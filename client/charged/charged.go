// Package charged remembers what an authority charged for work that was described
// to it, so that a client can decide about the same work by itself: which limits the
// attributes fit only the authority knows.
package charged

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"maps"
	"slices"
	"sync"

	"github.com/quorlease/quorlease/client/failopen"
)

// generationMax is how many descriptions a generation has. There are two, so that
// what was charged lately is remembered, and a client that never describes the same
// work twice keeps no more than that (G10).
const generationMax = 1024

// Work is what a request says of its work.
type Work struct {
	// Client and Class are attributes too, unless they are among them.
	Client, Class string
	Attributes    map[string]string
	// Amounts are tokens by dimension. Of one that is not named it is 1.
	Amounts map[string]int64
	// Charges are those that the request names itself.
	Charges []failopen.Charge
}

// Book remembers charges. The zero value is ready. Safe for concurrent use.
type Book struct {
	mu          sync.Mutex
	now, before map[key][]failopen.Charge
}

type key [sha256.Size]byte

// Note takes in what was charged for work, its own charges among them.
func (b *Book) Note(w *Work, charges []failopen.Charge) {
	k := w.key()
	made := slices.DeleteFunc(slices.Clone(charges), func(c failopen.Charge) bool { return w.names(&c) })
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.now == nil || len(b.now) >= generationMax {
		b.now, b.before = make(map[key][]failopen.Charge), b.now
	}
	b.now[k] = made
}

// Of is what would be charged for work, its own charges first. It is false, with
// these alone, where nothing is remembered.
func (b *Book) Of(w *Work) ([]failopen.Charge, bool) {
	if len(w.Attributes) == 0 {
		return w.Charges, true
	}
	k := w.key()
	b.mu.Lock()
	made, ok := b.now[k]
	if !ok {
		made, ok = b.before[k]
	}
	b.mu.Unlock()
	all := slices.Clone(w.Charges)
	for _, c := range made {
		// The amount may be another one each time.
		if c.Amount = w.Amounts[c.Dimension]; c.Amount == 0 {
			c.Amount = 1
		}
		all = append(all, c)
	}
	return all, ok
}

// names says whether a charge is one that the request names itself.
func (w *Work) names(c *failopen.Charge) bool {
	return slices.ContainsFunc(w.Charges, func(own failopen.Charge) bool {
		return own.Limit == c.Limit && own.Key == c.Key && own.Dimension == c.Dimension
	})
}

// key is what makes work the same: all but the amounts.
func (w *Work) key() (k key) {
	sum := sha256.New()
	text(sum, w.Client, w.Class)
	for _, name := range slices.Sorted(maps.Keys(w.Attributes)) {
		text(sum, "attribute", name, w.Attributes[name])
	}
	for _, name := range slices.Sorted(maps.Keys(w.Amounts)) {
		text(sum, "amount", name)
	}
	for i := range w.Charges {
		text(sum, "charge", w.Charges[i].Limit, w.Charges[i].Key, w.Charges[i].Dimension)
	}
	sum.Sum(k[:0])
	return k
}

// text adds texts with their lengths, so that no two lists are the same. A hash
// never fails.
func text(sum hash.Hash, texts ...string) {
	for _, one := range texts {
		var n [8]byte
		binary.LittleEndian.PutUint64(n[:], uint64(len(one)))
		_, _ = sum.Write(n[:])
		_, _ = sum.Write([]byte(one))
	}
}
