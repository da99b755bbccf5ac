package witness

import (
	"time"

	"github.com/quorlease/quorlease/bench/sim/judge"
	"github.com/quorlease/quorlease/bench/sim/rules"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/shares"
)

// level is what there is of the limit of which clients are promised shares, with what is
// owed taken off.
func (v *Witness) level() int64 {
	in, err := v.Replica.Inspect(v.Replica.Now(), rules.Crowd, "")
	if err != nil {
		v.judge.Complain("model", "%v", err)
		return 0
	}
	return in.Buckets[0].Level - in.Buckets[0].Debt
}

// outlived lets time pass as an entry says, and checks that where nobody stamped anything
// for long nothing came in: those who were cut off have spent it (T51).
func (v *Witness) outlived(c *judge.Committed, pass func()) {
	before, stamp := v.Replica.Now(), bucket.Instant(c.Entry.GetStamp())
	_, promised := v.Replica.Shares().Sessions(rules.Crowd)
	if promised == 0 || stamp-before <= shares.Silence {
		pass()
		return
	}
	had := v.level()
	pass()
	v.Stats.Withheld++
	if has := v.level(); has > had {
		v.judge.Complain("shares", "%d came in at index %d, after %v in which clients used what they were promised",
			has-had, c.Index, time.Duration(stamp-before))
	}
}
