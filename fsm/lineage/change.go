package lineage

import (
	"google.golang.org/protobuf/proto"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// change works out the version that a limit makes of the one before. limit is nil
// where it was deleted.
type change struct {
	old   *Version
	limit *logv1.Limit
	now   bucket.Instant
	next  *Version
}

// begin takes the dimensions of the limit over, and numbers new ones from number
// on; it returns the number that comes after them.
func (c *change) begin(shapes []*bucket.Shape, number uint32) uint32 {
	for i, spec := range c.limit.GetDimensions() {
		d := c.dimension(spec, shapes[i])
		// Of another kind it is another one: tokens that were left of a rate are no
		// quota, and the other way round.
		if at := c.old.Variant.find(spec.GetName(), d.Kind); at >= 0 {
			d.follow(&c.old.Dimensions[at], c.now)
		} else {
			d.ID, d.Pristine = number, d.Shape.Full(c.now)
			number++
		}
		c.next.Dimensions = append(c.next.Dimensions, d)
	}
	return number
}

func (c *change) dimension(spec *logv1.Dimension, shape *bucket.Shape) Dimension {
	return Dimension{
		Kind: c.limit.GetKind(), Spec: spec, Classes: c.limit.GetClasses(), Target: HandedOut(c.limit), Shape: shape,
	}
}

// keep remembers what the limit no longer has.
func (c *change) keep() {
	for _, d := range c.old.Dimensions {
		if c.next.FindID(d.ID) >= 0 || d.over(c.now) {
			continue
		}
		if d.Until == 0 {
			d.Until = c.old.refilled(d.ID, c.now)
		}
		c.next.Dimensions = append(c.next.Dimensions, d)
	}
}

// refilled is when every bucket of a dimension is full again, whatever key it is of.
func (v *Version) refilled(id uint32, now bucket.Instant) bucket.Instant {
	i := v.FindID(id)
	at := v.Dimensions[i].refilled(now)
	for o := range v.Overrides {
		at = max(at, v.Overrides[o].Dimensions[i].refilled(now))
	}
	return at
}

// override takes the overrides of the limit over, and remembers those that it no
// longer has. The keys of a new one have had the numbers of one other before, since
// those with longer prefixes keep what they have.
func (c *change) override() {
	live := &Version{}
	for _, o := range c.limit.GetOverrides() {
		shapes, err := shapesOf(o.GetDimensions(), c.limit, "")
		if err != nil {
			panic("lineage: an override was checked and can't be used: " + err.Error())
		}
		one := Override{Value: o.GetValue(), Prefix: o.GetPrefix()}
		for i, spec := range o.GetDimensions() {
			one.Dimensions = append(one.Dimensions, c.dimension(spec, shapes[i]))
		}
		live.Overrides = append(live.Overrides, one)
	}
	sortOverrides(live.Overrides)
	live.seal(nil)
	for i := range live.Overrides {
		c.add(&live.Overrides[i], live.Overrides[i].Dimensions)
	}
	for i := range c.old.Overrides {
		o := c.old.Overrides[i]
		if live.find(o.place()) >= 0 {
			continue
		}
		if c.limit == nil {
			c.add(&o, nil)
			continue
		}
		o.Removed = true
		around := c.next.Dimensions
		if at := live.search(o.place()); at >= 0 {
			around = live.Overrides[at].Dimensions
		}
		c.add(&o, around)
	}
	sortOverrides(c.next.Overrides)
	c.next.seal(nil)
	*c.next = *c.next.without(c.now)
}

// add gives the keys of an override the numbers of the dimensions, which are those
// of the limit in its order; and what they have had of those that it has no more.
func (c *change) add(o *Override, numbers []Dimension) {
	before := c.old.at(o.place())
	one := Override{Value: o.Value, Prefix: o.Prefix, Removed: o.Removed}
	for i := range c.next.Dimensions {
		d := c.next.Dimensions[i]
		at := before.FindID(d.ID)
		if !d.Live() {
			until := d.Until
			d = before.Dimensions[at]
			d.Until = until
			one.Dimensions = append(one.Dimensions, d)
			continue
		}
		d.Spec, d.Shape = numbers[i].Spec, numbers[i].Shape
		if at >= 0 {
			d.follow(&before.Dimensions[at], c.now)
		} else {
			d.Pristine = d.Shape.Full(c.now)
		}
		one.Dimensions = append(one.Dimensions, d)
	}
	c.next.Overrides = append(c.next.Overrides, one)
}

// window goes on with the one that there is. Of another calendar the leader says
// which is the first one; what was used stays used in it.
func (c *change) window() {
	c.next.Calendar, c.next.Starts, c.next.Ends = c.old.Calendar, c.old.Starts, c.old.Ends
	if c.limit == nil || proto.Equal(c.limit.GetCalendar(), c.old.Calendar) {
		return
	}
	c.next.Calendar, c.next.Starts, c.next.Ends = c.limit.GetCalendar(), 0, 0
}
