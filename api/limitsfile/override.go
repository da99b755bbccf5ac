package limitsfile

import (
	"fmt"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// overrides are complete: what one does not say is as the limit has it, and a
// size that the limit does not give either is of the override's own rate.
func (r *resolver) overrides(l *quorleasev1.Limit, out *logv1.Limit) {
	switch n := len(l.GetOverrides()); {
	case n > 0 && !out.GetKeyed():
		r.fail("overrides", "must be absent where there is one bucket for all: per names what makes the key")
		return
	case n > overridesMax:
		r.fail("overrides", "%d, more than %d", n, overridesMax)
		return
	}
	keys, prefixes := map[string]int{}, map[string]int{}
	for i, o := range l.GetOverrides() {
		at := fmt.Sprintf("overrides[%d]", i)
		override := &logv1.Override{Value: o.GetKey()}
		if (o.GetKey() == "") == (o.GetPrefix() == "") {
			r.fail(at, "wants one of key and prefix")
		}
		if o.GetPrefix() != "" {
			override.Value, override.Prefix = o.GetPrefix(), true
		}
		r.problem(at+".key", KeyProblem(o.GetKey()))
		r.problem(at+".prefix", KeyProblem(o.GetPrefix()))
		r.unique(keys, at+".key", o.GetKey(), "overrides[%d]", i)
		r.unique(prefixes, at+".prefix", o.GetPrefix(), "overrides[%d]", i)
		override.Dimensions = r.overridden(at, l, out, o)
		out.Overrides = append(out.Overrides, override)
	}
}

// overridden are the dimensions of an override, in the order of the limit's.
func (r *resolver) overridden(
	at string, l *quorleasev1.Limit, out *logv1.Limit, o *quorleasev1.Override,
) []*logv1.Dimension {
	if len(o.GetDimensions()) == 0 {
		r.fail(at, "says nothing: name what is other than in the limit")
	}
	named := map[string]int{}
	for i, d := range o.GetDimensions() {
		field := fmt.Sprintf("%s.dimensions[%d].name", at, i)
		r.unique(named, field, d.GetName(), at+".dimensions[%d]", i)
		if !hasDimension(out, d.GetName()) {
			r.fail(field, "%s: the limit does not count it", Quote(d.GetName()))
		}
	}
	var all []*logv1.Dimension
	for _, like := range out.GetDimensions() {
		i, given := named[like.GetName()]
		if !given {
			all = append(all, like)
			continue
		}
		d := o.GetDimensions()[i]
		all = append(all, r.override(fmt.Sprintf("%s.dimensions[%d].", at, i), l, out, like, d))
	}
	return all
}

func hasDimension(l *logv1.Limit, name string) bool {
	for _, d := range l.GetDimensions() {
		if d.GetName() == name {
			return true
		}
	}
	return false
}

func (r *resolver) override(
	at string, l *quorleasev1.Limit, out *logv1.Limit, like *logv1.Dimension, d *quorleasev1.Dimension,
) *logv1.Dimension {
	if out.GetKind() != logv1.Kind_KIND_RATE {
		if d.GetRate() != nil || d.MaxDebt != nil || d.MaxOpen != nil {
			r.fail(at+"rate", "must be absent where nothing is refilled: burst alone is how many")
		}
		if d.Burst == nil {
			r.fail(at+"burst", "missing")
		}
		most := r.within(at+"burst", d.GetBurst(), 0, bucket.MaxTokens)
		if out.GetKind() == logv1.Kind_KIND_CONCURRENCY {
			return slots(most)
		}
		return ofWindow(like.GetName(), most)
	}
	whole := &quorleasev1.Dimension{
		Name: d.GetName(), Rate: d.GetRate(), Burst: d.Burst, MaxDebt: d.MaxDebt, MaxOpen: d.MaxOpen,
	}
	if of := dimensionOf(l.GetDimensions(), like.GetName()); of != nil {
		for _, s := range sizes {
			if field := s.field(whole); *field == nil {
				*field = *s.field(of)
			}
		}
	}
	before := len(r.errs)
	dimension := r.dimension(at, whole, out.GetTarget(), like)
	if len(r.errs) == before {
		r.shape(at, out, dimension)
	}
	return dimension
}
