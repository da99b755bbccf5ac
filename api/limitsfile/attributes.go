package limitsfile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quorlease/quorlease/api/limitsfile/strict"
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

// Bounds of attributes.
const (
	// AttributeMax is the longest value of an attribute, in bytes.
	AttributeMax = 256
	matchMax     = 16
	perMax       = 8
)

// perKey stands for the key of the charge, where no attributes make it.
const perKey = "key"

// AttributeProblem is DimensionProblem for the name of an attribute, which looks
// the same.
func AttributeProblem(s string) string { return wordProblem(s, "an attribute") }

// ValueProblem says why s is not the value of an attribute; "" when it is: 1 to 256
// bytes of UTF-8 without control characters.
func ValueProblem(s string) string {
	if s == "" {
		return "missing: 1 to 256 bytes"
	}
	return textProblem(s, AttributeMax)
}

// attributes says for what work the limit is, and what makes its keys.
func (r *resolver) attributes(l *quorleasev1.Limit, out *logv1.Limit) {
	if n := len(l.GetMatch()); n > matchMax {
		r.fail("match", "%d attributes, more than %d", n, matchMax)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(l.GetMatch())) {
		at := "match." + strict.Shortened(name)
		r.problem(at, AttributeProblem(name))
		value, prefix := strings.CutSuffix(l.GetMatch()[name], "*")
		switch {
		case value == "" && !prefix:
			r.fail(at, `missing: a value, what it begins with and a star, or "*"`)
		case strings.Contains(value, "*"):
			r.fail(at, "%s: a star may stand at the end only", Quote(l.GetMatch()[name]))
		default:
			r.problem(at, textProblem(value, AttributeMax))
		}
		out.Match = append(out.Match, &logv1.Match{Attribute: name, Value: value, Prefix: prefix})
	}
	r.per(l, out)
}

func (r *resolver) per(l *quorleasev1.Limit, out *logv1.Limit) {
	per := l.GetPer()
	if n := len(per); n > perMax {
		r.fail("per", "%d attributes, more than %d", n, perMax)
		return
	}
	out.Keyed = len(per) > 0
	if len(per) == 1 && per[0] == perKey {
		if len(l.GetMatch()) > 0 {
			r.fail("per[0]", "key is that of an explicit charge; beside match name the attributes that make it")
		}
		return
	}
	for i, attribute := range per {
		at := fmt.Sprintf("per[%d]", i)
		r.problem(at, AttributeProblem(attribute))
		switch {
		case attribute == perKey:
			r.fail(at, "key stands alone: [key] is the key of an explicit charge")
		case slices.Contains(per[:i], attribute):
			r.fail(at, "%s is there twice", Quote(attribute))
		}
	}
	out.Per = per
}
