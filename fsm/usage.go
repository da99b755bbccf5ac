package fsm

import (
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/state"
)

// match finds the charges of the lease that a list of usages speaks of. Each
// usage must speak of one at least, and no two of the same.
func match(l *state.Lease, usages []*logv1.Usage) (reported, error) {
	var used reported
	for i := range used {
		used[i] = unnamed
	}
	if len(usages) > maxUsages {
		return used, badField("used", "%d: must be at most %d", len(usages), maxUsages)
	}
	for i, u := range usages {
		if u.GetUsed() < 0 || u.GetUsed() > bucket.MaxTokens {
			return used, badField(at("used", i, "used"), "%d: must be from 0 to %d", u.GetUsed(), int64(bucket.MaxTokens))
		}
		found := false
		for j := range l.Charges {
			if !speaksOf(u, &l.Charges[j]) {
				continue
			}
			found = true
			if used[j] != unnamed {
				return used, badField(at("used", i, "dimension"), "%q: its charge of limit %q is named twice",
					state.Clip(u.GetDimension()), l.Charges[j].Limit)
			}
			used[j] = u.GetUsed()
		}
		if !found {
			return used, badField(at("used", i, "dimension"), "%q of limit %q and key %q: the lease has no such charge",
				state.Clip(u.GetDimension()), state.Clip(u.GetLimit()), state.Clip(u.GetKey()))
		}
	}
	return used, nil
}

// speaksOf: without limit and key a usage is about every charge of its
// dimension.
func speaksOf(u *logv1.Usage, c *state.Charge) bool {
	if u.GetDimension() != c.Dimension {
		return false
	}
	return u.GetLimit() == "" && u.GetKey() == "" || u.GetLimit() == c.Limit && u.GetKey() == c.KeyName
}
