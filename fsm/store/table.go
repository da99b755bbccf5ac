// Package store holds the records of the state machine: tables that can be
// frozen in an instant, and queues of what is due.
//
// A table is cut into shards. To freeze it is to copy the list of shards and to
// begin a new generation; whoever changes a shard or a record of an earlier
// generation copies it first. So a snapshot of a million records costs
// microseconds, and what it costs later is spread over the changes.
//
// Where a record lies is decided by a hash with a seed of its own for each
// table, as in Go's maps, so that nobody can choose keys that collide. Nothing
// may depend on it: whatever walks a table must come to the same result in any
// order.
//
// The package is pure but for that seed: no clock, no lock, no goroutine. One
// caller changes a table; others may read it while it doesn't. What is frozen
// may be read at any time, from any goroutine.
package store

import (
	"fmt"
	"hash/maphash"
	"iter"
)

// Record is what a table holds: a pointer to R with a key of type K.
type Record[K comparable, R any] interface {
	*R
	// Key never changes.
	Key() K
	// Generation is where the table notes when the record was last copied.
	Generation() *uint32
	// Clone copies what may change.
	Clone() *R
}

// Table holds records by key.
type Table[K comparable, R any, P Record[K, R]] struct {
	seed       maphash.Seed
	generation uint32
	count      int
	shards     []*shard[P]
}

// NewTable makes an empty table. More shards make the copies after a freeze
// smaller and the freeze longer, by about a nanosecond each.
func NewTable[K comparable, R any, P Record[K, R]](shards int) *Table[K, R, P] {
	return &Table[K, R, P]{seed: maphash.MakeSeed(), shards: make([]*shard[P], shards)}
}

// Len is the number of records.
func (t *Table[K, R, P]) Len() int { return t.count }

// Find returns the record with key, or nil. It may be frozen: change only what
// Own returns.
func (t *Table[K, R, P]) Find(key K) P {
	at, hash := t.place(key)
	s := t.shards[at]
	if s == nil {
		return nil
	}
	if i := find(s, hash, key); i >= 0 {
		return s.cells[i].record
	}
	return nil
}

// Insert adds a record whose key the table does not have.
func (t *Table[K, R, P]) Insert(record P) {
	at, hash := t.place(record.Key())
	s := t.own(at)
	if find(s, hash, record.Key()) >= 0 {
		panic(fmt.Sprintf("store: key %v is there already, %d records", record.Key(), t.count))
	}
	*record.Generation() = t.generation
	s.insert(hash, record)
	t.count++
}

// Own returns the record to change: itself, or the copy that takes its place
// because the record is frozen. Pointers to the frozen one must be renewed.
func (t *Table[K, R, P]) Own(record P) P {
	if *record.Generation() == t.generation {
		return record
	}
	at, hash := t.place(record.Key())
	s := t.own(at)
	i := find(s, hash, record.Key())
	if i < 0 || s.cells[i].record != record {
		panic(fmt.Sprintf("store: record %v is not in the table of %d", record.Key(), t.count))
	}
	fresh := P(record.Clone())
	*fresh.Generation() = t.generation
	s.cells[i].record = fresh
	return fresh
}

// Remove takes the record out. It must be there.
func (t *Table[K, R, P]) Remove(record P) {
	at, hash := t.place(record.Key())
	s := t.own(at)
	i := find(s, hash, record.Key())
	if i < 0 {
		panic(fmt.Sprintf("store: record %v is not in the table of %d", record.Key(), t.count))
	}
	s.remove(i)
	t.count--
}

// All walks the records in no particular order.
func (t *Table[K, R, P]) All() iter.Seq[P] { return all(t.shards) }

// Parts is how many parts the table is walked in by Part. A record stays in its own
// as long as it is in the table.
func (t *Table[K, R, P]) Parts() int { return len(t.shards) }

// Part walks the records of one part in no particular order.
func (t *Table[K, R, P]) Part(i int) iter.Seq[P] { return all(t.shards[i : i+1]) }

// Freeze keeps the table as it is now.
func (t *Table[K, R, P]) Freeze() Frozen[R, P] {
	t.generation++
	if t.count == 0 {
		return Frozen[R, P]{}
	}
	return Frozen[R, P]{shards: append([]*shard[P](nil), t.shards...), count: t.count}
}

// Frozen is a table as it was.
type Frozen[R any, P interface{ *R }] struct {
	shards []*shard[P]
	count  int
}

// Len is the number of records.
func (f Frozen[R, P]) Len() int { return f.count }

// All walks the records in no particular order. They must not be changed.
func (f Frozen[R, P]) All() iter.Seq[P] { return all(f.shards) }

func all[P any](shards []*shard[P]) iter.Seq[P] {
	return func(yield func(P) bool) {
		for _, s := range shards {
			if s == nil {
				continue
			}
			for _, c := range s.cells {
				if c.hash != 0 && !yield(c.record) {
					return
				}
			}
		}
	}
}

// place is the shard of a key and its hash within it, never zero.
func (t *Table[K, R, P]) place(key K) (at int, hash uint32) {
	h := maphash.Comparable(t.seed, key)
	return int((h >> 32) % uint64(len(t.shards))), uint32(h) | 1
}

// own returns a shard that may be changed.
func (t *Table[K, R, P]) own(at int) *shard[P] {
	s := t.shards[at]
	switch {
	case s == nil:
		s = &shard[P]{generation: t.generation}
	case s.generation != t.generation:
		s = &shard[P]{
			generation: t.generation, count: s.count,
			cells: append(make([]cell[P], 0, len(s.cells)), s.cells...),
		}
	default:
		return s
	}
	t.shards[at] = s
	return s
}
