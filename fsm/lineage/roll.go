package lineage

import (
	"slices"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// longestWindow is longer than any: a month of 31 days, and what a zone may be set
// back by.
const longestWindow = bucket.Instant(33 * 24 * time.Hour)

// lengths are how long windows may be. Clocks are put forward and back, and a zone
// may skip a day; but with windows of a minute a quota would be none.
var lengths = map[logv1.Calendar_Period]struct{ least, most time.Duration }{
	logv1.Calendar_PERIOD_HOUR:  {15 * time.Minute, 3 * time.Hour},
	logv1.Calendar_PERIOD_DAY:   {12 * time.Hour, 48 * time.Hour},
	logv1.Calendar_PERIOD_MONTH: {27 * 24 * time.Hour, time.Duration(longestWindow)},
}

// Roll is the lineage in its next window, in Unix nanoseconds from starts until
// before ends: every bucket of the quota is full, and what was owed is written off.
// The first window only gets its name: what has been used since there is the quota
// counts in it. Whether it has begun is not known here. The error is a *FieldError.
func (l *Lineage) Roll(starts, ends int64, now bucket.Instant) (*Lineage, error) {
	old := l.Now()
	length, known := lengths[l.Limit.GetCalendar().GetPeriod()]
	switch long := time.Duration(ends - starts); {
	case l.Limit.GetKind() != logv1.Kind_KIND_QUOTA || !known:
		return nil, bad("limit", "%q: has no windows", clip(l.Name))
	case starts < 0 || starts < old.Ends:
		return nil, bad("starts", "%d: must be at least %d, where the window before ends", starts, old.Ends)
	case ends < starts || long < length.least || long > length.most:
		return nil, bad("ends", "%d: must be from %v to %v after starts, %d", ends, length.least, length.most, starts)
	}
	next := *l
	v := *old
	v.Starts, v.Ends = starts, ends
	if old.Ends == 0 {
		next.Versions = append(slices.Clone(l.Versions[:len(l.Versions)-1]), &v)
		return &next, nil
	}
	v.Number, v.Since = old.Number+1, now
	v.Overrides = slices.Clone(old.Overrides)
	numbers := make(map[uint32]uint32)
	for i := range old.Dimensions {
		if d := &old.Dimensions[i]; d.Kind == logv1.Kind_KIND_QUOTA && d.Live() {
			numbers[d.ID] = next.NextDimension
			next.NextDimension++
		}
	}
	v.renew(numbers, now)
	for i := range v.Overrides {
		v.Overrides[i].renew(numbers, now)
	}
	next.Versions = append(slices.Clone(l.Versions), v.seal(old))
	return &next, nil
}

// renew fills the buckets of a quota, under other numbers, and lets go of those that
// the limit has no more.
func (v *Variant) renew(numbers map[uint32]uint32, now bucket.Instant) {
	dimensions := v.Dimensions
	v.Dimensions = make([]Dimension, 0, len(dimensions))
	for _, d := range dimensions {
		if d.Kind == logv1.Kind_KIND_QUOTA {
			if !d.Live() {
				continue
			}
			d.ID, d.Pristine = numbers[d.ID], d.Shape.Full(now)
		}
		v.Dimensions = append(v.Dimensions, d)
	}
}
