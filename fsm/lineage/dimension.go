package lineage

import (
	"slices"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// Find is the index of the dimension with a name, removed ones too, or -1. One that
// the limit has comes before removed ones of another kind.
func (v *Variant) Find(name string) int {
	for i := range v.Dimensions {
		if v.Dimensions[i].Spec.GetName() == name {
			return i
		}
	}
	return -1
}

// FindID is the index of the dimension with a number, or -1.
func (v *Variant) FindID(id uint32) int {
	for i := range v.Dimensions {
		if v.Dimensions[i].ID == id {
			return i
		}
	}
	return -1
}

// FullAt is when the pristine buckets are full: from then on a key that is full
// is as one that was never seen.
func (v *Variant) FullAt() bucket.Instant { return v.full }

// find is the index of the dimension with a name and a kind, or -1.
func (v *Variant) find(name string, kind logv1.Kind) int {
	return slices.IndexFunc(v.Dimensions, func(d Dimension) bool { return d.Spec.GetName() == name && d.Kind == kind })
}

// fill works out when the pristine buckets are full.
func (v *Variant) fill() {
	v.full = 0
	for i := range v.Dimensions {
		full, ok := v.Dimensions[i].Pristine.FullAt(v.Dimensions[i].Shape)
		if !ok {
			full = Never
		}
		v.full = max(v.full, full)
	}
}

// alike says that a bucket has nothing to pass from one to the other.
func (v *Variant) alike(o *Variant) bool {
	return slices.EqualFunc(v.Dimensions, o.Dimensions, func(a, b Dimension) bool { return a.ID == b.ID && a.alike(&b) })
}

// Fresh is what a key holds that was never seen, at now.
func (v *Variant) Fresh(now bucket.Instant) []Held {
	held := make([]Held, len(v.Dimensions))
	for i := range held {
		held[i].Bucket = v.Dimensions[i].Untouched(now)
	}
	return held
}

// Untouched is the pristine bucket at now.
func (d *Dimension) Untouched(now bucket.Instant) bucket.Bucket {
	b := d.Pristine.Clone()
	b.Advance(d.Shape, now)
	return b
}

// Live says that the limit has the dimension now.
func (d *Dimension) Live() bool { return d.Until == 0 }

// Class is the index of a class by name. A dimension without classes has the
// one unnamed class, whatever the caller calls itself; an empty name is the
// first class.
func (d *Dimension) Class(name string) (index int, ok bool) {
	if len(d.Classes) == 0 || name == "" {
		return 0, true
	}
	index = slices.IndexFunc(d.Classes, func(c *logv1.Class) bool { return c.GetName() == name })
	return max(index, 0), index >= 0
}

// ClassName is the name of a class, empty for the unnamed one.
func (d *Dimension) ClassName(index int) string {
	if len(d.Classes) == 0 {
		return ""
	}
	return d.Classes[index].GetName()
}

// over says that a removed dimension may be forgotten.
func (d *Dimension) over(now bucket.Instant) bool { return d.Until != 0 && d.Until <= now }

// follow makes d the same dimension as old under other numbers.
func (d *Dimension) follow(old *Dimension, now bucket.Instant) {
	d.ID = old.ID
	d.Pristine = old.Pristine
	if d.alike(old) {
		// What is alike stays one, so that comparing is cheap.
		d.Shape = old.Shape
		return
	}
	d.Pristine = old.Untouched(now)
	d.take(old, &d.Pristine)
}

// take makes a bucket of d of one of old, the same dimension under other numbers.
func (d *Dimension) take(old *Dimension, b *bucket.Bucket) {
	switch d.Kind {
	case logv1.Kind_KIND_CONCURRENCY:
		// What is open counts, not the bucket: a lowered limit drains.
		*b = d.Shape.Full(b.Last())
	case logv1.Kind_KIND_QUOTA:
		b.Recount(old.Shape, d.Shape)
	case logv1.Kind_KIND_RATE:
		b.Convert(old.Shape, d.Shape, d.origin(old))
	}
}

// alike says that a bucket has nothing to pass from one to the other. It compares
// numbers, since a restored node has other pointers.
func (d *Dimension) alike(o *Dimension) bool {
	if d.Shape == o.Shape {
		return true
	}
	a, b := d.Spec, o.Spec
	return d.Kind == o.Kind && a.GetAmount() == b.GetAmount() && a.GetInterval() == b.GetInterval() &&
		a.GetBurst() == b.GetBurst() && a.GetMaxDebt() == b.GetMaxDebt() && d.Target == o.Target &&
		slices.EqualFunc(d.Classes, o.Classes, func(x, y *logv1.Class) bool {
			return x.GetName() == y.GetName() && x.GetShare() == y.GetShare() && x.GetBurst() == y.GetBurst()
		})
}

// origin says for each class which class of old it was, by name.
func (d *Dimension) origin(old *Dimension) []int {
	if len(d.Classes) == 0 && len(old.Classes) == 0 {
		return []int{0}
	}
	origin := make([]int, len(d.Classes))
	for i, class := range d.Classes {
		origin[i] = slices.IndexFunc(old.Classes, func(c *logv1.Class) bool { return c.GetName() == class.GetName() })
	}
	return origin
}

// refilled is when a bucket that is empty at now, with all the debt that it may
// have, is full again: every bucket is by then. It is after Memory at least.
func (d *Dimension) refilled(now bucket.Instant) bucket.Instant {
	if d.Kind == logv1.Kind_KIND_QUOTA {
		// The clock that ends windows is never slower than this one.
		return now + longestWindow
	}
	worst := d.Shape.Empty(now)
	for class := range d.Shape.Classes() {
		worst.Excess(d.Shape, class, d.Shape.MaxDebt())
	}
	at, ok := worst.FullAt(d.Shape)
	if !ok {
		return Never
	}
	return max(at, now+Memory)
}
