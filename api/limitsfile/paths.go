package limitsfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorlease/quorlease/api/limitsfile/strict"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

// renamed are fields that the file calls otherwise, by how their paths end.
var renamed = []struct{ protocol, file string }{
	{"].fallback_share_bp", "].fallback.share"},
	{"].client", "].match.client"},
	{"].dimensions", "].rate"},
	{"].warn_fraction_bp", "].warn.fraction"},
	{"].warn_for", "].warn.for"},
	{".min_retries.amount", ".min_retries"},
	{".min_retries.interval", ".min_retries"},
	{".quota.period", ".quota.per"},
	{"_bp", ""},
}

// sourcePath is what the file calls a field of the public protocol:
// limits[0].dimensions[1].burst is limits[0].burst.input_tokens there, or
// limits[0].burst where that is one duration for all.
func (d *decoder) sourcePath(req *quorleasev1.LimitsApplyRequest, field string) string {
	var i, j, k int
	rest := field[strings.LastIndexAny(field, ".")+1:]
	if n, _ := fmt.Sscanf(field, "limits[%d].overrides[%d].dimensions[%d]", &i, &j, &k); n == 3 {
		dimension := req.GetLimits()[i].GetOverrides()[j].GetDimensions()[k]
		return d.dimensionPath(fmt.Sprintf("limits[%d].overrides[%d].", i, j), rest, dimension.GetName())
	}
	if n, _ := fmt.Sscanf(field, "limits[%d].dimensions[%d]", &i, &j); n == 2 {
		dimension := req.GetLimits()[i].GetDimensions()[j]
		return d.dimensionPath(fmt.Sprintf("limits[%d].", i), rest, dimension.GetName())
	}
	if n, _ := fmt.Sscanf(field, "limits[%d].classes[%d]", &i, &j); n == 2 {
		path := fmt.Sprintf("limits[%d].classes.%s", i, strict.Shortened(req.GetLimits()[i].GetClasses()[j].GetName()))
		if part, found := strings.CutSuffix(rest, "_bp"); found {
			return path + "." + part
		}
		return path
	}
	field = strings.Replace(field, ".warn_bp[", ".warn[", 1)
	for _, r := range renamed {
		if before, found := strings.CutSuffix(field, r.protocol); found {
			return before + r.file
		}
	}
	return field
}

// dimensionPath is where the file says a field of a dimension.
func (d *decoder) dimensionPath(at, field, name string) string {
	name = strict.Shortened(name)
	places := []string{at + "amounts." + name, at + "concurrency", at + "rate." + name}
	if slices.ContainsFunc(sizes, func(s size) bool { return s.name == field }) {
		places = []string{at + field + "." + name, places[0], places[1], at + field, places[2]}
	}
	for _, path := range places {
		if d.Has(path) {
			return path
		}
	}
	return at + "rate." + name
}
