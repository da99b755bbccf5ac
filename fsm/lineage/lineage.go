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

// lastInstant bounds authority time, as in fsm/check.
const lastInstant = bucket.Instant(1 << 62)

// Waiting is the place, after all instants, of a key that is not as one never seen
// before a window ends, whenever that is. Those that have passed the oldest
// versions come first.
func Waiting(passed uint32) bucket.Instant { return lastInstant + 1 + bucket.Instant(passed) }

// Bounds of what is kept of the past, so that a lineage fits a record of a snapshot.
const (
	crowdedVersions = 32
	crowdedNumbers  = 16_384
	// maxNumbers bounds the dimensions of all overrides of one version.
	maxNumbers = 4_096
)

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
	// Calendar is that of a quota, and Starts and Ends its window in Unix nanoseconds;
	// zero until the leader has said which.
	Calendar     *logv1.Calendar
	Starts, Ends int64
	// Variant is what counts for a key without an override.
	Variant
	// Overrides are single keys in the order of their bytes, then prefixes. Removed
	// ones are among them as long as they are remembered.
	Overrides []Override
	index     index
	// began is the version from which the buckets of quotas are others: what a key
	// holds of those of before counts no more.
	began uint32
}

// Variant is the arithmetic of one key, or of many.
type Variant struct {
	// Dimensions are those of the limit in the order of the file, then the
	// removed ones that are remembered.
	Dimensions []Dimension
	full       bucket.Instant
}

// Dimension is one thing that a limit counts, or counted.
type Dimension struct {
	ID uint32
	// Kind is what the limit was when it had the dimension.
	Kind logv1.Kind
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

// Due is when a key may be dropped of which the place among others is at: an instant
// or, where only the end of a window helps, Waiting.
func (l *Lineage) Due(at bucket.Instant) bucket.Instant {
	switch {
	case at <= lastInstant || at == Never:
		return at
	case at < Waiting(l.Now().began):
		return l.Now().Since
	}
	return Never
}

// Change is the lineage after its limit has become limit, or nil for a deletion.
// It fails where limit can't be used.
func (l *Lineage) Change(limit *logv1.Limit, now bucket.Instant) (*Lineage, error) {
	next := &Lineage{ID: l.ID, Name: l.Name, Limit: limit, NextDimension: l.NextDimension}
	c := &change{old: l.Now(), limit: limit, now: now, next: &Version{}}
	if limit == nil {
		next.Deleted = now
	} else {
		shapes, err := Shapes(limit)
		if err != nil {
			return nil, err
		}
		next.NextDimension = c.begin(shapes, next.NextDimension)
	}
	c.keep()
	if n := len(c.next.Dimensions); n > maxRemembered {
		return nil, bad("dimensions", "%d with the removed ones that are remembered until they are full again, at most %d",
			n, maxRemembered)
	}
	c.override()
	if n := c.next.numbers(); n > maxNumbers {
		return nil, bad("overrides", "%d numbers with the removed ones that are remembered until they are full again, "+
			"at most %d", n, maxNumbers)
	}
	c.window()
	next.Versions = l.with(c.next, now)
	return next, nil
}

// Forget is the lineage without what was removed and is over: it is as if it had
// never been.
func (l *Lineage) Forget(now bucket.Instant) *Lineage {
	next := *l
	next.Versions = l.with(l.Now().without(now), now)
	return &next
}

// Renew is the lineage with one more version of the arithmetic that there is: what goes
// by the number of a version is over, and no bucket has anything to pass.
func (l *Lineage) Renew(now bucket.Instant) *Lineage {
	next, again := *l, *l.Now()
	again.Number, again.Since = again.Number+1, now
	next.Versions = append(slices.Clone(l.Versions), &again)
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
// be forgotten as a whole if no key is left: its pristine buckets are full.
func (l *Lineage) ForgetAt() bucket.Instant {
	if l.Limit == nil {
		full := l.Now().FullAt()
		for i := range l.Now().Overrides {
			full = max(full, l.Now().Overrides[i].FullAt())
		}
		return max(full, l.Deleted+Memory)
	}
	return l.Now().overAt()
}

// EndAt is when the windows of a deleted quota are over in any case, so that Forget
// lets its keys go; Never where it has none.
func (l *Lineage) EndAt() bucket.Instant {
	at := Never
	for i := range l.Now().Dimensions {
		if d := &l.Now().Dimensions[i]; d.Kind == logv1.Kind_KIND_QUOTA && !d.Live() {
			at = min(at, d.Until)
		}
	}
	return at
}

// Crowded says that so much of the past is kept that all keys of the limit should
// be taken to the version now, so that a file applied in a loop costs no memory.
func (l *Lineage) Crowded() bool {
	if len(l.Versions) > crowdedVersions {
		return true
	}
	numbers := 0
	for _, v := range l.Versions {
		numbers += v.numbers()
	}
	return len(l.Versions) > 1 && numbers > crowdedNumbers
}

// with is the versions with one more, or with the last one replaced where the
// arithmetic is as it was: then no bucket has anything to pass.
func (l *Lineage) with(next *Version, now bucket.Instant) []*Version {
	old, versions := l.Now(), slices.Clone(l.Versions)
	if next.same(old) {
		next.Number, next.Since = old.Number, old.Since
		versions[len(versions)-1] = next.seal(old)
		return versions
	}
	next.Number, next.Since = old.Number+1, now
	return append(versions, next.seal(old))
}
