// Package quota says when as much of a quota is used as its limit warns at. It is
// pure.
package quota

import (
	"fmt"
	"strconv"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/effect"
	"github.com/quorlease/quorlease/fsm/state"
)

// Warn adds an effect for each part of a quota that is used now and of which was not
// warned in this window. k was touched, and is at now; dimension is an index. It does
// nothing where the limit is no quota.
func Warn(effects *effect.List, lim *state.Limit, k *state.Key, dimension int, client string) {
	if lim.Limit.GetKind() != logv1.Kind_KIND_QUOTA || len(lim.Limit.GetWarn()) == 0 {
		return
	}
	v := lim.Now().For(k.Name)
	d := &v.Dimensions[dimension]
	burst := d.Shape.Burst()
	used := burst - k.Held(dimension).Bucket.Remaining(d.Shape)
	for _, part := range lim.Limit.GetWarn() {
		if used < portion(burst, part) || burst == 0 {
			return
		}
		if !k.Warned(v, d.ID, part, lim.Limit.GetWarn()) {
			effects.Add(effect.Effect{
				Kind: effect.QuotaWarning, Limit: lim.Name, Key: k.Name, Dimension: d.Spec.GetName(), Client: client,
				Value: strconv.FormatInt(part, 10), Text: fmt.Sprintf("%d of %d are used", used, burst),
			})
		}
	}
}

// portion is hundredths of a percent of tokens, rounded up, without overflow.
func portion(tokens, hundredths int64) int64 {
	rest := tokens % bucket.Whole * hundredths
	return tokens/bucket.Whole*hundredths + (rest+bucket.Whole-1)/bucket.Whole
}
