package fsm

import (
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/digest"
	"github.com/quorlease/quorlease/fsm/lineage"
	"github.com/quorlease/quorlease/fsm/store"
)

// limit is one limit at work: its lineage, and what follows from the keys.
type limit struct {
	*lineage.Lineage
	// keys are the keys that differ from a never-seen one, by when they may be
	// dropped. What may never be is at the end.
	keys store.Queue[*key]
	// passed counts keys by the version that they have passed.
	passed map[uint32]int
	// names are what leases share; they follow from the leases.
	names  []*counted
	place  int32
	digest uint64
	// touched: it is in the machine's list for sealing.
	touched bool
}

// Place and Before are for the machine's queue of limits.
func (l *limit) Place() *int32        { return &l.place }
func (l *limit) Before(o *limit) bool { return l.ID < o.ID }

// live says that the limit is configured, not only remembered.
func (l *limit) live() bool { return l.Limit != nil }

// due is when the sweep has something to do for the limit: drop a key, forget a
// removed dimension, or forget a deleted limit when all is as if it had never
// been.
func (l *limit) due() bucket.Instant {
	if l.live() {
		_, at := l.keys.Top()
		return min(bucket.Instant(at), l.ForgetAt())
	}
	if _, at := l.keys.Top(); l.keys.Len() > 0 {
		return bucket.Instant(at)
	}
	return l.Now().FullAt()
}

// keyID names a key of a limit.
type keyID struct {
	limit uint32
	name  string
}

// key is what one key of a limit holds. There are a million: see the figures in
// TestMillionKeys before adding a field.
type key struct {
	name    string
	limit   uint32
	passed  uint32
	version uint32 // of the table: when it was last copied
	place   int32
	// leases counts the open leases of the key. It follows from the leases, and
	// is no part of a snapshot or digest; so does Open of what is held.
	leases  uint32
	touched bool
	digest  uint64
	// A limit has one dimension, or a few. first saves the second allocation.
	first lineage.Held
	rest  []lineage.Held
}

// ID, Generation and Clone are for the table, Place and Before for the queue.
func (k *key) ID() keyID           { return keyID{k.limit, k.name} }
func (k *key) Generation() *uint32 { return &k.version }
func (k *key) Place() *int32       { return &k.place }
func (k *key) Before(o *key) bool  { return k.name < o.name }

func (k *key) Clone() *key {
	c := *k
	c.first.Bucket = k.first.Bucket.Clone()
	if k.rest != nil {
		c.rest = clone(k.rest)
	}
	return &c
}

func clone(held []lineage.Held) []lineage.Held {
	c := make([]lineage.Held, len(held))
	for i := range held {
		c[i] = lineage.Held{Bucket: held[i].Bucket.Clone(), Open: held[i].Open}
	}
	return c
}

// held is what the key holds of dimension i of the version that it has passed.
func (k *key) held(i int) *lineage.Held {
	if i == 0 {
		return &k.first
	}
	return &k.rest[i-1]
}

// all is a copy of everything that the key holds, for lineage.Carry.
func (k *key) all(v *lineage.Version) []lineage.Held {
	held := make([]lineage.Held, len(v.Dimensions))
	for i := range held {
		held[i] = lineage.Held{Bucket: k.held(i).Bucket.Clone(), Open: k.held(i).Open}
	}
	return held
}

func (k *key) hold(held []lineage.Held) {
	k.first, k.rest = lineage.Held{}, nil
	if len(held) > 0 {
		k.first = held[0]
	}
	if len(held) > 1 {
		k.rest = held[1:]
	}
}

func (k *key) sum(v *lineage.Version) uint64 {
	sum := digest.New(tagKey)
	sum.Word(uint64(k.limit))
	sum.Text(k.name)
	sum.Word(uint64(k.passed))
	for i := range v.Dimensions {
		k.held(i).Bucket.Walk(sum.Int)
	}
	return sum.Value()
}

// due is when the key may be as one that was never seen: when it is full, and
// so is one that was never seen. It follows from the key and the version that
// it has passed alone, so that a restored node drops in the same entry.
func (k *key) due(v *lineage.Version) bucket.Instant {
	if k.leases > 0 {
		return lineage.Never
	}
	last, full := bucket.Instant(0), bucket.Instant(0)
	for i := range v.Dimensions {
		b := &k.held(i).Bucket
		last = max(last, b.Last())
		at, ok := b.FullAt(v.Dimensions[i].Shape)
		if !ok {
			at = lineage.Never
		}
		full = max(full, at)
	}
	if full != lineage.Never {
		full = max(full, v.FullAt())
	}
	switch {
	case full > last && full != lineage.Never:
		return full
	case k.pristine(v, last):
		return last
	}
	return lineage.Never
}

// pristine says whether the key is as one that was never seen, at now.
func (k *key) pristine(v *lineage.Version, now bucket.Instant) bool {
	for i := range v.Dimensions {
		d := &v.Dimensions[i]
		b, fresh := k.held(i).Bucket.Clone(), d.Untouched(now)
		b.Advance(d.Shape, now)
		if !b.Equal(&fresh) {
			return false
		}
	}
	return true
}
