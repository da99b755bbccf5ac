package escrow

import (
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
)

// Terms are what a limit says of its escrow. They must not be changed.
type Terms struct {
	Limit string
	// Version is the limit's: escrow of another one is void.
	Version uint32
	Keyed   bool
	// Life is that of escrow, Lease that of what is granted.
	Life, Lease time.Duration
	// Classes are in their order. None: one without a name.
	Classes    []string
	Dimensions []Dimension
	// Overrides are the keys with other numbers.
	Overrides []Override
}

// Override has other numbers for a key, or for keys with a prefix.
type Override struct {
	Value      string
	Prefix     bool
	Dimensions []Dimension
}

// Dimension is one of a limit.
type Dimension struct {
	Name string
	// Bursts are the effective bursts of the classes, in tokens; 0 where there is no
	// escrow.
	Bursts []int64
}

// same reports whether escrow of before is as good as of now.
func (t *Terms) same(before *Terms) bool {
	return t.Version == before.Version && t.Keyed == before.Keyed
}

// forKey are the dimensions of a key: the key's own first, then those of the longest
// prefix.
func (t *Terms) forKey(key string) []Dimension {
	best, dimensions := -1, t.Dimensions
	for i := range t.Overrides {
		switch o := &t.Overrides[i]; {
		case !o.Prefix && o.Value == key:
			return o.Dimensions
		case o.Prefix && len(o.Value) > best && strings.HasPrefix(key, o.Value):
			best, dimensions = len(o.Value), o.Dimensions
		}
	}
	return dimensions
}

// classes are how many there are, at least one.
func (t *Terms) classes() int { return max(1, len(t.Classes)) }

// class is the position of an acquire's class, -1 where there is none of that name.
func (t *Terms) class(name string) int {
	if len(t.Classes) == 0 || name == "" {
		return 0
	}
	return slices.Index(t.Classes, name)
}

// dimension is the position of a dimension, -1 for none.
func (t *Terms) dimension(name string) int {
	for i := range t.Dimensions {
		if t.Dimensions[i].Name == name {
			return i
		}
	}
	return -1
}

// pot is the position of a dimension and class among the pots of a key, -1 for none.
func (t *Terms) pot(dimension, class string) int {
	d, c := t.dimension(dimension), t.class(class)
	if d < 0 || c < 0 {
		return -1
	}
	return d*t.classes() + c
}

// burst is the effective burst of a pot of a key with those dimensions, 0 where it can
// have no escrow.
func (t *Terms) burst(of []Dimension, pot int) int64 {
	n := t.classes()
	if pot/n >= len(of) || pot%n >= len(of[pot/n].Bursts) {
		return 0
	}
	return of[pot/n].Bursts[pot%n]
}

// className is the name of a pot's class.
func (t *Terms) className(pot int) string {
	if len(t.Classes) == 0 {
		return ""
	}
	return t.Classes[pot%len(t.Classes)]
}

// book is what the wallet holds of one version of a limit.
type book struct {
	limit string
	terms atomic.Pointer[Terms]
	// turn counts changes of what may have escrow: a no of before is asked about again.
	turn   atomic.Uint64
	shards []shard
}

// shard is a part of a limit's keys.
type shard struct {
	// id is another one for each, and the order in which several are locked.
	id uint64

	mu   sync.Mutex
	keys map[string]*holding
	// touched are those that were used once.
	touched touches
	// over: its book was replaced.
	over bool
}

// shardsKeyed is how many parts the keys of a limit are in: a power of two.
const shardsKeyed = 64

var (
	shardIDs atomic.Uint64
	seed     = maphash.MakeSeed()
)

func newBook(t *Terms) *book {
	n := 1
	if t.Keyed {
		n = shardsKeyed
	}
	b := &book{limit: t.Limit, shards: make([]shard, n)}
	b.terms.Store(t)
	first := shardIDs.Add(uint64(n))
	for i := range b.shards {
		b.shards[i].id = first + uint64(i)
	}
	return b
}

// shard is where a key is.
func (b *book) shard(key string) *shard {
	s, _ := b.place(key)
	return s
}

// place is where a key is, and a hash of it which has nothing to do with that.
func (b *book) place(key string) (s *shard, hash uint32) {
	if len(b.shards) == 1 {
		return &b.shards[0], 0
	}
	h := maphash.String(seed, key)
	return &b.shards[h%uint64(len(b.shards))], uint32(h >> 32)
}

// books are all limits that may have escrow, as of one revision.
type books struct {
	revision uint64
	byLimit  map[string]*book
}

// spot is where one charge would be paid.
type spot struct {
	book  *book
	shard *shard
	pot   int
	// hash is that of the key.
	hash uint32
}

// tag is what a pot is known by among those that were touched.
func (at *spot) tag() uint32 { return at.hash + uint32(at.pot)*0x9E3779B1 }

// find is where a charge of a class is paid; ok is false where it can't be.
func (b *books) find(class string, c *logv1.Charge) (at spot, ok bool) {
	at.book = b.byLimit[c.GetLimit()]
	if at.book == nil {
		return at, false
	}
	terms := at.book.terms.Load()
	at.pot = terms.pot(c.GetDimension(), class)
	if at.pot < 0 || terms.Keyed == (c.GetKey() == "") {
		return at, false
	}
	at.shard, at.hash = at.book.place(c.GetKey())
	return at, true
}
