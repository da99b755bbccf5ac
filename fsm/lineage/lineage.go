// Package lineage knows a limit through all its changes, and carries buckets
// from one version of it to the next.
//
// A bucket is looked at only when somebody asks for it. When its limit changed in
// between, the time before the change counts at the old rate and the time after it at
// the new one, so that the old versions are kept until every bucket has
// passed them (T13). The bucket of a key that nobody has asked for yet, or that was
// dropped, is the pristine bucket: it was full when the dimension first appeared
// and has passed every change since. So a raised burst is no gift to it, and
// neither is a limit that is deleted and comes back (T14, A11, A12): what was
// removed goes on refilling under its last numbers until it may be forgotten.
//
// Everything here is immutable once made: a change makes a new Lineage. The
// package is pure: no clock, no lock, no goroutine.
package lineage

import (
	"math"
	"slices"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// Never is an instant that does not come.
const Never = bucket.Instant(math.MaxInt64)

// Memory is how long what was removed is remembered at least. When it comes back
// within that time with a higher burst it has still the tokens of the old one.
const Memory = bucket.Instant(24 * time.Hour)

// Lineage is a limit with the versions that some bucket has still to pass.
type Lineage struct {
	ID   uint32
	Name string
	// Limit is what was last configured; nil when it was deleted and is only
	// remembered. It must not be changed.
	Limit *logv1.Limit
	// Deleted is when that was.
	Deleted bucket.Instant
	// NextDimension numbers dimensions. A dimension that was forgotten and
	// comes back has a new number, so that old leases don't return to it.
	NextDimension uint32
	// Versions ascend by number without gaps; the last one is the one now.
	Versions []*Version
}

// Version is the arithmetic of a limit from Since on.
type Version struct {
	Number uint32
	Since  bucket.Instant
	// Dimensions are those of the limit in the order of the file, then the
	// removed ones that are remembered.
	Dimensions []Dimension
	full       bucket.Instant
}

// Dimension is one thing that a limit counts, or counted.
type Dimension struct {
	ID uint32
	// What Shape was made of. They must not be changed.
	Spec    *logv1.Dimension
	Classes []*logv1.Class
	Target  int64
	Shape   *bucket.Shape
	// Until is 0 for a dimension of the limit. A removed one may be forgotten
	// from then on: by then every bucket is full again.
	Until bucket.Instant
	// Pristine is the bucket of a key that was never seen.
	Pristine bucket.Bucket
}

// Held is what one key holds of one dimension.
type Held struct {
	Bucket bucket.Bucket
	// Open is the tokens of unsettled leases that can be refunded.
	Open int64
}

// New begins a lineage at now: everything is full.
func New(id uint32, limit *logv1.Limit, now bucket.Instant) (*Lineage, error) {
	empty := &Lineage{ID: id, Name: limit.GetName(), NextDimension: 1, Versions: []*Version{{Since: now}}}
	next, err := empty.Change(limit, now)
	if err != nil {
		return nil, err
	}
	// Nobody can have passed the version that had nothing.
	next.Versions = next.Versions[len(next.Versions)-1:]
	return next, nil
}

// Now is the version that counts.
func (l *Lineage) Now() *Version { return l.Versions[len(l.Versions)-1] }

// At is the version with a number, or nil.
func (l *Lineage) At(number uint32) *Version {
	i := int64(number) - int64(l.Versions[0].Number)
	if i < 0 || i >= int64(len(l.Versions)) {
		return nil
	}
	return l.Versions[i]
}

// Change is the lineage after its limit has become limit, or nil for a deletion.
// It fails where limit can't be used.
func (l *Lineage) Change(limit *logv1.Limit, now bucket.Instant) (*Lineage, error) {
	old := l.Now()
	next := &Lineage{ID: l.ID, Name: l.Name, Limit: limit, NextDimension: l.NextDimension}
	var dimensions []Dimension
	if limit == nil {
		next.Deleted = now
	} else {
		shapes, err := Shapes(limit)
		if err != nil {
			return nil, err
		}
		for i, spec := range limit.GetDimensions() {
			d := Dimension{Spec: spec, Classes: limit.GetClasses(), Target: limit.GetTarget(), Shape: shapes[i]}
			if at := old.Find(spec.GetName()); at >= 0 {
				d.follow(&old.Dimensions[at], now)
			} else {
				d.ID, d.Pristine = next.NextDimension, d.Shape.Full(now)
				next.NextDimension++
			}
			dimensions = append(dimensions, d)
		}
	}
	for _, d := range old.Dimensions {
		if slices.ContainsFunc(dimensions, func(kept Dimension) bool { return kept.ID == d.ID }) || d.over(now) {
			continue
		}
		if d.Until == 0 {
			d.Until = d.refilled(now)
		}
		dimensions = append(dimensions, d)
	}
	if len(dimensions) > maxRemembered {
		return nil, bad("dimensions", "%d with the removed ones that are remembered until they are full again, at most %d",
			len(dimensions), maxRemembered)
	}
	next.Versions = l.with(dimensions, now)
	return next, nil
}

// Forget is the lineage without the removed dimensions that are over.
func (l *Lineage) Forget(now bucket.Instant) *Lineage {
	next := *l
	kept := slices.DeleteFunc(slices.Clone(l.Now().Dimensions), func(d Dimension) bool { return d.over(now) })
	next.Versions = l.with(kept, now)
	return &next
}

// Trim is the lineage without the versions before the one that the most
// backward bucket has passed.
func (l *Lineage) Trim(passed uint32) *Lineage {
	next := *l
	next.Versions = slices.Clone(l.Versions[passed-l.Versions[0].Number:])
	return &next
}

// ForgetAt is when Forget has something to do; for a deleted limit, when it may
// be forgotten as a whole if no key is left: its pristine bucket is full.
func (l *Lineage) ForgetAt() bucket.Instant {
	if l.Limit == nil {
		return max(l.Now().FullAt(), l.Deleted+Memory)
	}
	at := Never
	for i := range l.Now().Dimensions {
		if until := l.Now().Dimensions[i].Until; until != 0 {
			at = min(at, until)
		}
	}
	return at
}

// with is the versions with one more, or with the last one replaced where the
// arithmetic is as it was: then no bucket has anything to pass.
func (l *Lineage) with(dimensions []Dimension, now bucket.Instant) []*Version {
	old := l.Now()
	same := len(old.Dimensions) == len(dimensions)
	for i := 0; same && i < len(dimensions); i++ {
		was := &old.Dimensions[i]
		same = was.ID == dimensions[i].ID && was.alike(&dimensions[i])
	}
	versions := slices.Clone(l.Versions)
	if same {
		versions[len(versions)-1] = newVersion(old.Number, old.Since, dimensions)
		return versions
	}
	return append(versions, newVersion(old.Number+1, now, dimensions))
}
