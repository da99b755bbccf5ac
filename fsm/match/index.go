package match

import (
	"slices"
	"strings"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
)

// Index finds the limits that fit. Make one for each revision of the limits.
type Index struct {
	revision uint64
	// names are the attributes that any limit looks at; a number is a place in it.
	names []string
	// rules are those of the limits with a match, in the order of their names.
	rules []rule
	// exact are the rules that want one value of one attribute, by both; of several
	// such wants the first. begins are the other rules.
	exact  map[want][]int32
	begins []int32
}

// rule is one limit with what it wants.
type rule struct {
	limit *logv1.Limit
	match []want
	// prefix says for each want whether a beginning will do.
	prefix []bool
	// per are the numbers of the attributes that make the key.
	per []int
}

// want is a value of an attribute, by its number.
type want struct {
	attribute int
	value     string
}

// The attributes that a request has by itself, unless it gives others.
const (
	clientName = "client"
	className  = "class"
)

// New makes the index of the limits of one revision. They must not change.
func New(revision uint64, limits []*logv1.Limit) *Index {
	x := &Index{revision: revision, exact: make(map[want][]int32)}
	ordered := slices.Clone(limits)
	slices.SortFunc(ordered, func(a, b *logv1.Limit) int { return strings.Compare(a.GetName(), b.GetName()) })
	for _, limit := range ordered {
		// A limit without a match fits nothing: only its name reaches it.
		if len(limit.GetMatch()) == 0 {
			continue
		}
		r := rule{limit: limit}
		first := -1
		for i, m := range limit.GetMatch() {
			r.match = append(r.match, want{x.number(m.GetAttribute()), m.GetValue()})
			r.prefix = append(r.prefix, m.GetPrefix())
			if first < 0 && !m.GetPrefix() {
				first = i
			}
		}
		for _, attribute := range limit.GetPer() {
			r.per = append(r.per, x.number(attribute))
		}
		at := int32(len(x.rules))
		x.rules = append(x.rules, r)
		if first < 0 {
			x.begins = append(x.begins, at)
			continue
		}
		x.exact[r.match[first]] = append(x.exact[r.match[first]], at)
	}
	return x
}

// number is the place of an attribute among the names.
func (x *Index) number(attribute string) int {
	at := slices.Index(x.names, attribute)
	if at < 0 {
		at = len(x.names)
		x.names = append(x.names, attribute)
	}
	return at
}

// Revision is that of the limits.
func (x *Index) Revision() uint64 { return x.revision }

// valuesOf looks every attribute up that any limit wants, empty where the request
// has none: a value is never empty. They are put into values.
func (x *Index) valuesOf(r *Request, values []string) []string {
	for _, name := range x.names {
		value := r.Attributes[name]
		if value == "" && name == clientName {
			value = r.Client
		}
		if value == "" && name == className {
			value = r.Class
		}
		values = append(values, value)
	}
	return values
}

// fitting appends the rules that fit, in the order of their limits' names.
func (x *Index) fitting(values []string, found []int32) []int32 {
	for attribute, value := range values {
		if value == "" {
			continue
		}
		for _, at := range x.exact[want{attribute, value}] {
			if x.rules[at].fits(values) {
				found = append(found, at)
			}
		}
	}
	for _, at := range x.begins {
		if x.rules[at].fits(values) {
			found = append(found, at)
		}
	}
	slices.Sort(found)
	return found
}

func (r *rule) fits(values []string) bool {
	for i, w := range r.match {
		value := values[w.attribute]
		switch {
		case value == "":
			return false
		case r.prefix[i]:
			if !strings.HasPrefix(value, w.value) {
				return false
			}
		case value != w.value:
			return false
		}
	}
	return true
}
