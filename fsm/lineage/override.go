package lineage

import (
	"slices"
	"strings"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// Override is what counts for one key, or for the keys with a prefix.
type Override struct {
	Value  string
	Prefix bool
	// Removed: it is no longer configured. Its keys have the numbers of the others,
	// but what was never seen of them has as yet the tokens of before (T14).
	Removed bool
	Variant
}

// place is what an override is for.
type place struct {
	value  string
	prefix bool
}

func placeOf(o *logv1.Override) place { return place{value: o.GetValue(), prefix: o.GetPrefix()} }

func (o *Override) place() place { return place{value: o.Value, prefix: o.Prefix} }

// compare orders single keys before prefixes.
func (p place) compare(o place) int {
	switch {
	case p.prefix == o.prefix:
		return strings.Compare(p.value, o.value)
	case o.prefix:
		return -1
	}
	return 1
}

// index finds the override of a key in a few steps, however many there are.
type index struct {
	// exact is the number of overrides for single keys.
	exact int
	// within is for each prefix the longest shorter one that it begins with, as an
	// index into the overrides, or -1.
	within []int
}

// seal works out what follows from a version that comes after before.
func (v *Version) seal(before *Version) *Version {
	v.fill()
	v.index = index{}
	for i := range v.Overrides {
		o := &v.Overrides[i]
		o.fill()
		if !o.Prefix {
			v.index.exact++
			continue
		}
		v.index.within = append(v.index.within, v.prefixOf(o.Value, i-1))
	}
	if before == nil || v.Number == before.Number {
		if before != nil {
			v.began = before.began
		}
		return v
	}
	v.began = before.began
	for i := range before.Dimensions {
		if d := &before.Dimensions[i]; d.Kind == logv1.Kind_KIND_QUOTA && v.FindID(d.ID) < 0 {
			v.began = v.Number
		}
	}
	return v
}

// prefixOf is the longest prefix that a value begins with, from the one at index i
// on outwards, or -1. All that come between a prefix and a value that begins with it
// begin with it too.
func (v *Version) prefixOf(value string, i int) int {
	for i >= v.index.exact && !strings.HasPrefix(value, v.Overrides[i].Value) {
		i = v.index.within[i-v.index.exact]
	}
	if i < v.index.exact {
		return -1
	}
	return i
}

// search is the index of the override that counts at a place, or -1: the place's
// own, or the longest prefix.
func (v *Version) search(p place) int {
	if !p.prefix {
		if at, found := among(v.Overrides[:v.index.exact], p.value); found {
			return at
		}
	}
	at, found := among(v.Overrides[v.index.exact:], p.value)
	if at += v.index.exact; found {
		return at
	}
	return v.prefixOf(p.value, at-1)
}

// outer is the index of the override that counts where the one at index i does not,
// or -1.
func (v *Version) outer(i int) int {
	if v.Overrides[i].Prefix {
		return v.index.within[i-v.index.exact]
	}
	return v.search(place{value: v.Overrides[i].Value, prefix: true})
}

// For is the arithmetic of a key: that of its override, else of the longest prefix,
// else of the limit. Its dimensions are those of the version, number by number.
func (v *Version) For(key string) *Variant { return v.at(place{value: key}) }

func (v *Version) at(p place) *Variant {
	if len(v.Overrides) == 0 {
		return &v.Variant
	}
	return v.variant(v.search(p))
}

func (v *Version) variant(i int) *Variant {
	if i < 0 {
		return &v.Variant
	}
	return &v.Overrides[i].Variant
}

// numbers is how many dimensions the overrides have together.
func (v *Version) numbers() int { return len(v.Overrides) * len(v.Dimensions) }

// same says that no key has anything to pass from old to v. What is no longer
// remembered has to be passed: a key that is full may have to wait for others.
func (v *Version) same(old *Version) bool {
	if !v.alike(&old.Variant) {
		return false
	}
	for i := range old.Overrides {
		if j := v.find(old.Overrides[i].place()); j < 0 {
			return false
		}
	}
	for i := range v.Overrides {
		if o := &v.Overrides[i]; !o.alike(old.at(o.place())) {
			return false
		}
	}
	return true
}

// find is the index of the override of a place, or -1.
func (v *Version) find(p place) int {
	at, found := slices.BinarySearchFunc(v.Overrides, p, func(o Override, p place) int { return o.place().compare(p) })
	if !found {
		return -1
	}
	return at
}

// among is where a value is, or would be, among overrides in the order of their
// bytes. It is on the way of every charge, and so copies none of them.
func among(overrides []Override, value string) (at int, found bool) {
	end := len(overrides)
	for at < end {
		middle := int(uint(at+end) / 2)
		switch c := strings.Compare(overrides[middle].Value, value); {
		case c == 0:
			return middle, true
		case c < 0:
			at = middle + 1
		default:
			end = middle
		}
	}
	return at, false
}

// overrideOver is from when on the override at index i, a removed one, makes no
// difference: its keys have the numbers of those around it, and all that was never
// seen is full.
func (v *Version) overrideOver(i int) bucket.Instant {
	o := &v.Overrides[i]
	if !o.Removed {
		return Never
	}
	around := v.variant(v.outer(i))
	if !o.alike(around) {
		return Never
	}
	return max(o.full, around.full)
}

// overAt is when something of what was removed may be forgotten.
func (v *Version) overAt() bucket.Instant {
	at := Never
	for i := range v.Dimensions {
		if until := v.Dimensions[i].Until; until != 0 {
			at = min(at, until)
		}
	}
	for i := range v.Overrides {
		at = min(at, v.overrideOver(i))
	}
	return at
}

// without is the version without what is over.
func (v *Version) without(now bucket.Instant) *Version {
	next := &Version{Calendar: v.Calendar, Starts: v.Starts, Ends: v.Ends}
	next.Dimensions = kept(v.Dimensions, now)
	for i := range v.Overrides {
		if v.overrideOver(i) <= now {
			continue
		}
		o := v.Overrides[i]
		o.Dimensions = kept(o.Dimensions, now)
		next.Overrides = append(next.Overrides, o)
	}
	return next
}

func kept(dimensions []Dimension, now bucket.Instant) []Dimension {
	return slices.DeleteFunc(slices.Clone(dimensions), func(d Dimension) bool { return d.over(now) })
}

// sortOverrides puts them in the order that they are searched in.
func sortOverrides(overrides []Override) {
	slices.SortFunc(overrides, func(a, b Override) int { return a.place().compare(b.place()) })
}
