package lease

import (
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/check"
	"github.com/quorlease/quorlease/fsm/record"
	"github.com/quorlease/quorlease/fsm/refuse"
	"github.com/quorlease/quorlease/fsm/state"
)

// maxUsages bounds what one operation names.
const maxUsages = 64

// tagUsage keeps the digests of usages apart from others. It is kept with
// leases: never change it.
const tagUsage = 103

// match finds the charges of the lease that a list of usages speaks of. Each
// usage must speak of one at least, and no two of the same.
func match(l *state.Lease, usages []*logv1.Usage) (reported, error) {
	var used reported
	for i := range used {
		used[i] = unnamed
	}
	if len(usages) > maxUsages {
		return used, refuse.Field("used", "%d: must be at most %d", len(usages), maxUsages)
	}
	for i, u := range usages {
		if u.GetUsed() < 0 || u.GetUsed() > bucket.MaxTokens {
			return used, refuse.Field(refuse.At("used", i, "used"),
				"%d: must be from 0 to %d", u.GetUsed(), int64(bucket.MaxTokens))
		}
		found := false
		for j := range l.Charges {
			if !speaksOf(u, &l.Charges[j]) {
				continue
			}
			found = true
			if used[j] != unnamed {
				return used, refuse.Field(refuse.At("used", i, "dimension"), "%q: its charge of limit %q is named twice",
					check.Clip(u.GetDimension()), l.Charges[j].Limit)
			}
			used[j] = u.GetUsed()
		}
		if !found {
			return used, refuse.Field(refuse.At("used", i, "dimension"),
				"%q of limit %q and key %q: the lease has no such charge",
				check.Clip(u.GetDimension()), check.Clip(u.GetLimit()), check.Clip(u.GetKey()))
		}
	}
	return used, nil
}

// speaksOf: without limit and key a usage is about every charge of its
// dimension.
func speaksOf(u *logv1.Usage, c *record.Charge) bool {
	if u.GetDimension() != c.Dimension {
		return false
	}
	return u.GetLimit() == "" && u.GetKey() == "" || u.GetLimit() == c.Limit && u.GetKey() == c.KeyName
}
