package planning

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorlease/quorlease/api/limitsfile"
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cmd/quorlease/exit"
)

// choose finds the limit that the plan is of, and its index in the file.
func (o *Options) choose(name string, file *limitsfile.File, costs []cost) (at int, l *logv1.Limit, err error) {
	all, err := limitsfile.ResolveAll(file.Request)
	if err != nil {
		return 0, nil, fmt.Errorf("%s: %w", name, err)
	}
	limits := all.GetLimits()
	if o.limit == "" {
		return only(limits, costs)
	}
	at = slices.IndexFunc(limits, func(l *logv1.Limit) bool { return l.GetName() == o.limit })
	if at < 0 {
		return 0, nil, exit.Usagef("--limit %s: the file has no such limit, but %s",
			limitsfile.Quote(o.limit), names(limits, func(*logv1.Limit) bool { return true }))
	}
	l = limits[at]
	if !isRate(l) {
		field := fmt.Sprintf("limits[%d]", at)
		line, column := file.Place(field + ".name")
		return 0, nil, &limitsfile.SourceError{
			File: name, Line: line, Column: column, Field: field + ".name",
			Problem: limitsfile.Quote(l.GetName()) + " has no rate, and a plan is of rates",
		}
	}
	if missing := without(l, costs); missing != "" {
		return 0, nil, exit.Usagef("--cost: the limit %s has no dimension %s, but %s", l.GetName(), missing, dimensions(l))
	}
	return at, l, nil
}

// only is the one limit that has all of the dimensions of the costs.
func only(limits []*logv1.Limit, costs []cost) (at int, l *logv1.Limit, err error) {
	fits := func(l *logv1.Limit) bool { return isRate(l) && without(l, costs) == "" }
	at = slices.IndexFunc(limits, fits)
	if at < 0 {
		var wanted []string
		for _, c := range costs {
			wanted = append(wanted, c.dimension)
		}
		return 0, nil, exit.Usagef("--cost: no limit of the file has rates of %s; those that have rates are %s",
			strings.Join(wanted, " and "), names(limits, isRate))
	}
	if slices.ContainsFunc(limits[at+1:], fits) {
		return 0, nil, exit.Usagef("--limit is missing: more than one has these dimensions: %s", names(limits, fits))
	}
	return at, limits[at], nil
}

func isRate(l *logv1.Limit) bool { return l.GetKind() == logv1.Kind_KIND_RATE && !l.GetUnlimited() }

// without is the first dimension of the costs that the limit does not have.
func without(l *logv1.Limit, costs []cost) string {
	for _, c := range costs {
		if !slices.ContainsFunc(l.GetDimensions(), func(d *logv1.Dimension) bool { return d.GetName() == c.dimension }) {
			return c.dimension
		}
	}
	return ""
}

// names lists at most ten.
func names(limits []*logv1.Limit, which func(*logv1.Limit) bool) string {
	const most = 10
	var list []string
	for _, l := range limits {
		if which(l) {
			list = append(list, l.GetName())
		}
	}
	if len(list) == 0 {
		return "none"
	}
	if len(list) > most {
		list = append(list[:most], "…")
	}
	return strings.Join(list, ", ")
}

func dimensions(l *logv1.Limit) string {
	var list []string
	for _, d := range l.GetDimensions() {
		list = append(list, d.GetName())
	}
	return strings.Join(list, ", ")
}
