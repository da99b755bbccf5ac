package lineage

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// load takes the next version of a snapshot.
func (l *Lineage) load(saved *logv1.SnapshotVersion, now bucket.Instant) error {
	var before *Version
	var was *Variant
	if len(l.Versions) > 0 {
		before = l.Now()
		was = &before.Variant
	}
	since, n := bucket.Instant(saved.GetSince()), len(saved.GetDimensions())
	switch {
	case since < 0 || since > now || before != nil && since < before.Since:
		return fmt.Errorf("since %d: must ascend, and be at most %d", since, now)
	case n > maxRemembered:
		return fmt.Errorf("%d dimensions: must be at most %d", n, maxRemembered)
	case len(saved.GetOverrides())*n > maxNumbers || n == 0 && len(saved.GetOverrides()) > maxNumbers:
		return fmt.Errorf("%d overrides of %d dimensions: must be at most %d together",
			len(saved.GetOverrides()), n, maxNumbers)
	case saved.GetStarts() < 0 || saved.GetEnds() < saved.GetStarts():
		return fmt.Errorf("window from %d to %d: must ascend", saved.GetStarts(), saved.GetEnds())
	case saved.Calendar != nil && checkCalendar(saved.Calendar) != nil:
		return checkCalendar(saved.Calendar)
	}
	v := &Version{
		Number: saved.GetNumber(), Since: since, Calendar: saved.Calendar, Starts: saved.GetStarts(), Ends: saved.GetEnds(),
	}
	for _, one := range saved.GetDimensions() {
		d := Dimension{
			ID: one.GetId(), Kind: one.GetKind(), Spec: one.GetSpec(), Classes: one.GetClasses(), Target: one.GetTarget(),
			Until: bucket.Instant(one.GetUntil()),
		}
		if d.ID == 0 || d.ID >= l.NextDimension || v.FindID(d.ID) >= 0 || d.Until < 0 ||
			v.Variant.find(d.Spec.GetName(), d.Kind) >= 0 {
			return fmt.Errorf("dimension %d, %q: is wrong or there twice", d.ID, clip(d.Spec.GetName()))
		}
		if err := d.load(l.Name, was, one.GetPristine(), now); err != nil {
			return fmt.Errorf("dimension %d: %w", d.ID, err)
		}
		v.Dimensions = append(v.Dimensions, d)
	}
	for i, one := range saved.GetOverrides() {
		if err := l.loadOverride(v, before, one, now); err != nil {
			return fmt.Errorf("override %d: %w", i, err)
		}
	}
	l.Versions = append(l.Versions, v.seal(before))
	return nil
}

// load works out the arithmetic of a dimension, and checks it: the checks of a limit
// are those of its dimensions. What is alike before stays one.
func (d *Dimension) load(name string, before *Variant, pristine *logv1.SnapshotBucket, now bucket.Instant) error {
	limit := &logv1.Limit{
		Name: name, Kind: d.Kind, Dimensions: []*logv1.Dimension{d.Spec}, Classes: d.Classes, Target: d.Target,
		Lease: minLease, MaxKeys: 1,
	}
	if d.Kind == logv1.Kind_KIND_QUOTA {
		limit.Calendar = &logv1.Calendar{Period: logv1.Calendar_PERIOD_DAY, Timezone: "UTC"}
	}
	shapes, err := Shapes(limit)
	if err != nil {
		return err
	}
	d.Shape = shapes[0]
	if before != nil {
		if at := before.FindID(d.ID); at >= 0 && d.alike(&before.Dimensions[at]) {
			d.Shape = before.Dimensions[at].Shape
		}
	}
	if d.Pristine, err = LoadBucket(d.Shape, pristine, now); err != nil {
		return fmt.Errorf("pristine: %w", err)
	}
	return nil
}

func (l *Lineage) loadOverride(v, before *Version, saved *logv1.SnapshotOverride, now bucket.Instant) error {
	o := Override{Value: saved.GetValue(), Prefix: saved.GetPrefix(), Removed: saved.GetRemoved()}
	switch n := len(v.Overrides); {
	case o.Value == "" || !isText(o.Value, maxKey):
		return fmt.Errorf("value %q: must be 1 to %d bytes of %s", clip(o.Value), maxKey, textPattern)
	case n > 0 && v.Overrides[n-1].place().compare(o.place()) >= 0:
		return fmt.Errorf("value %q: is out of order", clip(o.Value))
	case len(saved.GetDimensions()) != len(v.Dimensions):
		return fmt.Errorf("%d dimensions: must be the %d of the version", len(saved.GetDimensions()), len(v.Dimensions))
	}
	var was *Variant
	if before != nil {
		was = before.at(o.place())
	}
	for i, one := range saved.GetDimensions() {
		d := v.Dimensions[i]
		if one.GetSpec().GetName() != d.Spec.GetName() {
			return fmt.Errorf("dimension %q: must be %q", clip(one.GetSpec().GetName()), d.Spec.GetName())
		}
		d.Spec = one.GetSpec()
		if err := d.load(l.Name, was, one.GetPristine(), now); err != nil {
			return fmt.Errorf("dimension %d: %w", d.ID, err)
		}
		o.Dimensions = append(o.Dimensions, d)
	}
	v.Overrides = append(v.Overrides, o)
	return nil
}

// counts says whether the version now counts what is configured.
func (l *Lineage) counts() bool {
	v := l.Now()
	live := v.live()
	if !equal(live, l.Limit.GetDimensions()) || l.Limit != nil && !proto.Equal(v.Calendar, l.Limit.GetCalendar()) {
		return false
	}
	for i := range v.Dimensions {
		if v.Dimensions[i].Live() && v.Dimensions[i].Kind != l.Limit.GetKind() {
			return false
		}
	}
	overrides := 0
	for i := range v.Overrides {
		if !v.Overrides[i].Removed {
			overrides++
		}
	}
	if l.Limit == nil {
		return true
	}
	for _, o := range l.Limit.GetOverrides() {
		at := v.find(placeOf(o))
		if at < 0 || v.Overrides[at].Removed || !equal(v.Overrides[at].live(), o.GetDimensions()) {
			return false
		}
	}
	return overrides == len(l.Limit.GetOverrides())
}

// live is the dimensions that the limit has, as they were configured.
func (v *Variant) live() []*logv1.Dimension {
	var live []*logv1.Dimension
	for i := range v.Dimensions {
		if v.Dimensions[i].Live() {
			live = append(live, v.Dimensions[i].Spec)
		}
	}
	return live
}

func equal(a, b []*logv1.Dimension) bool {
	return slices.EqualFunc(a, b, func(x, y *logv1.Dimension) bool { return proto.Equal(x, y) })
}
