package bucket

// Convert carries the bucket over a change of its limit, from the shape it has
// to the shape to. Advance it under from first. origin[i] is the class of from
// that is class i of to, or -1 for a new one; a missing element counts as -1.
//
// A change never gives a token: levels are rounded down, a higher burst only
// makes room, a new class starts with an empty sub-bucket. What no longer fits
// a sub-bucket, and the sub-buckets of classes that are gone, become free; what
// no longer fits the burst is lost (A12, T13). Debts are kept, rounded up, also
// beyond a lower MaxDebt, as far as 63 bits hold them; those of classes that
// are gone go to class 0, so that renaming a class does not shed its debt.
func (b *Bucket) Convert(from, to *Shape, origin []int) {
	old := b.subs
	var kept [MaxClasses]bool
	var subs []sub
	if to.named || old != nil {
		subs = make([]sub, len(to.classes))
	}
	free := Rescale(from, to, b.free)
	for i := range subs {
		if i >= len(origin) || origin[i] < 0 || origin[i] >= len(old) || kept[origin[i]] {
			continue
		}
		kept[origin[i]] = true
		own := old[origin[i]]
		level := Rescale(from, to, own.level)
		subs[i].level = min(level, to.classes[i].room)
		subs[i].debt = mulDivUp(own.debt, to.unit, from.unit)
		free = add(free, level-subs[i].level)
	}
	for c, own := range old {
		if !kept[c] {
			free = add(free, Rescale(from, to, own.level))
			subs[0].debt = add(subs[0].debt, mulDivUp(own.debt, to.unit, from.unit))
		}
	}
	b.subs = subs
	b.free = min(free, to.full-b.reserved())
	b.trim(to)
}

// Rescale makes units of the shape to out of units of the shape from, rounded
// down; math.MaxInt64 where they don't fit. Use it for the took of a charge
// whose limit has changed before its Refund.
func Rescale(from, to *Shape, units int64) int64 {
	if from.unit == to.unit {
		return units
	}
	return mulDiv(units, to.unit, from.unit)
}

// Recount carries a bucket that nothing is ever refilled to over a change of its
// limit: of what there may be in all as much stays used as was, so that the
// difference is more or less to take. What was used beyond a lower burst is owed, and
// comes off what a higher one brings: a burst that goes down and up again is no
// gift (A12, T13). Both shapes have no rate and no classes.
func (b *Bucket) Recount(from, to *Shape) {
	used := add(from.full-b.free-b.reserved(), b.sub(0).debt)
	b.subs, b.free = nil, to.full-used
	if b.free < 0 {
		b.subs, b.free = []sub{{debt: -b.free}}, 0
	}
}
