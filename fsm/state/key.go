package state

import (
	"fmt"
	"iter"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/digest"
	"github.com/quorlease/quorlease/fsm/lineage"
)

// keyID names a key of a limit.
type keyID struct {
	limit uint32
	name  string
}

// Key is what one key of a limit holds. There are a million: see the figures of
// TestMillionBuckets before adding a field.
type Key struct {
	Name    string
	LimitID uint32
	// Passed is the version of the limit that the buckets are of.
	Passed     uint32
	generation uint32
	place      int32
	// Leases counts the open leases of the key. It follows from the leases, and
	// is no part of a snapshot or digest; so does Open of what is held.
	Leases  uint32
	touched bool
	// controlled says that feedback controls the key. It follows from the controls,
	// and is no part of a snapshot or digest either.
	controlled bool
	// lent says that nodes hold escrow of the key. It follows from the ledger, and is no
	// part of a snapshot or digest either.
	lent   bool
	digest uint64
	// A limit has one dimension, or a few: first saves the second allocation, and a
	// pointer to the rest 16 bytes a key.
	first lineage.Held
	rest  *[]lineage.Held
	rare  *rare
}

// Key, Generation and Clone are for the table, Place and Before for the queue.
func (k *Key) Key() keyID          { return keyID{k.LimitID, k.Name} }
func (k *Key) Generation() *uint32 { return &k.generation }
func (k *Key) Place() *int32       { return &k.place }
func (k *Key) Before(o *Key) bool  { return k.Name < o.Name }

func (k *Key) Clone() *Key {
	c := *k
	c.first.Bucket = k.first.Bucket.Clone()
	if k.rest != nil {
		rest := make([]lineage.Held, len(*k.rest))
		for i, held := range *k.rest {
			rest[i] = lineage.Held{Bucket: held.Bucket.Clone(), Open: held.Open}
		}
		c.rest = &rest
	}
	c.rare = k.rare.clone()
	return &c
}

// Held is what the key holds of dimension i of the version that it has passed.
func (k *Key) Held(i int) *lineage.Held {
	if i == 0 {
		return &k.first
	}
	return &(*k.rest)[i-1]
}

// All is a copy of everything that the key holds, for lineage.Pass; v is the
// version that it has passed.
func (k *Key) All(v *lineage.Version) []lineage.Held {
	held := make([]lineage.Held, len(v.Dimensions))
	for i := range held {
		held[i] = lineage.Held{Bucket: k.Held(i).Bucket.Clone(), Open: k.Held(i).Open}
	}
	return held
}

func (k *Key) hold(held []lineage.Held) {
	k.first, k.rest = lineage.Held{}, nil
	if len(held) > 0 {
		k.first = held[0]
	}
	if len(held) > 1 {
		rest := held[1:]
		k.rest = &rest
	}
}

func (k *Key) sum(v *lineage.Version) uint64 {
	sum := digest.New(tagKey)
	sum.Word(uint64(k.LimitID))
	sum.Text(k.Name)
	sum.Word(uint64(k.Passed))
	for i := range v.Dimensions {
		k.Held(i).Bucket.Walk(sum.Int)
	}
	k.rare.digest(&sum)
	return sum.Value()
}

// due is when the key may be as one that was never seen: when it is full, and
// so is one that was never seen. It follows from the key and the version that
// it has passed alone, so that a restored node drops in the same entry. Where only the
// end of a window helps it is lineage.Waiting.
func (k *Key) due(in *lineage.Version) bucket.Instant {
	if k.Leases > 0 || k.controlled || k.lent {
		return lineage.Never
	}
	v := in.For(k.Name)
	last, full := bucket.Instant(0), bucket.Instant(0)
	for i := range v.Dimensions {
		b := &k.Held(i).Bucket
		last = max(last, b.Last())
		if v.Dimensions[i].Kind == logv1.Kind_KIND_CONCURRENCY {
			// Slots are held by leases, whatever the bucket says.
			continue
		}
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
	case k.Pristine(v, last):
		return last
	}
	return lineage.Waiting(k.Passed)
}

// Pristine says whether the key is as one that was never seen, at now. v is what the
// version that it has passed counts for it.
func (k *Key) Pristine(v *lineage.Variant, now bucket.Instant) bool {
	for i := range v.Dimensions {
		d := &v.Dimensions[i]
		if d.Kind == logv1.Kind_KIND_CONCURRENCY {
			continue
		}
		b, fresh := k.Held(i).Bucket.Clone(), d.Untouched(now)
		b.Advance(d.Shape, now)
		if !b.Equal(&fresh) {
			return false
		}
	}
	return true
}

// FindKey returns the key, or nil for one that is as never seen. Change only what
// ChangeKey returns.
func (s *State) FindKey(limit uint32, name string) *Key { return s.keys.Find(keyID{limit, name}) }

// KeyParts is in how many parts the keys of all limits are walked by KeysIn, for who
// can't hold entries up for as long as all take. A key stays in its part.
func (s *State) KeyParts() int { return s.keys.Parts() }

// KeysIn walks the keys of one part, of all limits, in no particular order.
func (s *State) KeysIn(part int) iter.Seq[*Key] { return s.keys.Part(part) }

// AddKey adds a key that was never seen, to be changed.
func (s *State) AddKey(lim *Limit, name string) *Key { return s.insertKey(lim, s.newKey(lim, name)) }

func (s *State) newKey(lim *Limit, name string) *Key {
	k := &Key{Name: name, LimitID: lim.ID, Passed: lim.Now().Number}
	v, p := lim.Now().For(name), s.Passage(lim, nil)
	held := make([]lineage.Held, len(v.Dimensions))
	for i := range held {
		held[i].Bucket = v.Dimensions[i].Pristine.Clone()
		p.Bring(&held[i].Bucket, v.Dimensions[i].Shape, 0)
	}
	k.hold(held)
	return k
}

func (s *State) insertKey(lim *Limit, k *Key) *Key {
	s.keys.Insert(k)
	lim.keys.Set(k, int64(lineage.Never))
	lim.count(k, true)
	lim.pass(k.Passed, 1)
	return s.touchKey(lim, k)
}

// ChangeKey returns the key to change, carried to the version now of its limit, and up
// to now where feedback controls it. Pointers to the key of before are void.
func (s *State) ChangeKey(lim *Limit, k *Key) *Key {
	k = s.touchKey(lim, k)
	if now := lim.Now().Number; k.Passed != now {
		k.hold(lim.Pass(k.Name, k.All(lim.At(k.Passed)), k.Passed))
		k.forfeit()
		lim.pass(k.Passed, -1)
		lim.pass(now, 1)
		k.Passed = now
	}
	s.live(lim, k)
	return k
}

func (s *State) touchKey(lim *Limit, k *Key) *Key {
	if k.touched {
		return k
	}
	own := s.keys.Own(k)
	if own != k {
		lim.keys.Renew(own)
	}
	own.touched = true
	s.sum -= own.digest
	s.touched.keys = append(s.touched.keys, own)
	s.touchLimit(lim)
	return own
}

// DropKey forgets a key that is as one never seen. It must have been touched.
func (s *State) DropKey(lim *Limit, k *Key) {
	k.touched = false
	lim.keys.Remove(k)
	lim.count(k, false)
	lim.pass(k.Passed, -1)
	s.keys.Remove(k)
}

// SealKey gives a touched key its digest and its place among what is due.
func (s *State) SealKey(k *Key) {
	if !k.touched {
		return
	}
	k.touched = false
	lim := s.limitsByID[k.LimitID]
	v := lim.At(k.Passed)
	k.digest = k.sum(v)
	s.sum += k.digest
	lim.keys.Set(k, int64(k.due(v)))
}

// NoRoom says why the limit can't have one more key; empty where it can. A limit
// without keys can have its one in any case.
func (s *State) NoRoom(lim *Limit) string {
	switch {
	case !lim.Limit.GetKeyed():
		return ""
	case int64(lim.Keys()) >= lim.Limit.GetMaxKeys():
		return fmt.Sprintf("limit %q has %d keys, at most %d", lim.Name, lim.Keys(), lim.Limit.GetMaxKeys())
	case int64(s.Keys()) >= s.Caps.GetKeys():
		return fmt.Sprintf("there are %d keys over all limits, at most %d", s.Keys(), s.Caps.GetKeys())
	}
	return ""
}
