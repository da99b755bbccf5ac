package limitsfile

import (
	"fmt"
	"strings"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

// sourcePath is what the file calls a field of the public protocol:
// limits[0].dimensions[1].burst is limits[0].burst.input_tokens there, or
// limits[0].burst where that is one duration for all.
func (d *decoder) sourcePath(req *quorleasev1.LimitsApplyRequest, field string) string {
	var i, j int
	if n, _ := fmt.Sscanf(field, "limits[%d].dimensions[%d]", &i, &j); n == 2 {
		return d.dimensionPath(field, i, shortened(req.GetLimits()[i].GetDimensions()[j].GetName()))
	}
	if n, _ := fmt.Sscanf(field, "limits[%d].classes[%d]", &i, &j); n == 2 {
		_, rest, _ := strings.Cut(field, "].classes[")
		_, rest, _ = strings.Cut(rest, "].")
		name := shortened(req.GetLimits()[i].GetClasses()[j].GetName())
		path := fmt.Sprintf("limits[%d].classes.%s", i, name)
		switch rest {
		case "share_bp", "burst_bp":
			return path + "." + strings.TrimSuffix(rest, "_bp")
		default:
			return path
		}
	}
	if before, found := strings.CutSuffix(field, "].fallback_share_bp"); found {
		return before + "].fallback.share"
	}
	if strings.HasSuffix(field, "].client") {
		return strings.TrimSuffix(field, "client") + "match.client"
	}
	if strings.HasSuffix(field, ".dimensions") {
		return strings.TrimSuffix(field, "dimensions") + "rate"
	}
	return strings.TrimSuffix(field, "_bp")
}

func (d *decoder) dimensionPath(field string, limit int, name string) string {
	at := fmt.Sprintf("limits[%d].", limit)
	_, rest, _ := strings.Cut(field, "].dimensions[")
	_, rest, _ = strings.Cut(rest, "].")
	switch rest {
	case "burst", "max_debt", "max_open":
		if _, known := d.places[at+rest+"."+name]; known {
			return at + rest + "." + name
		}
		return at + rest
	default:
		return at + "rate." + name
	}
}
