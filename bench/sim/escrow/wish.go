package escrow

import (
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/bench/sim/rules"
	"github.com/quorlease/quorlease/bench/sim/stage"
)

// Wish is what somebody may want of the limit that nodes hold some of: seldom much, and
// where it is scarce more than there is.
func Wish(s *stage.Stage, key string, scarce bool) (class string, want []*logv1.Charge) {
	most := int64(8)
	if scarce || s.Chance(30) {
		most = 100
	}
	class = []string{"live", "batch"}[s.Rand.IntN(2)]
	if s.Chance(2) {
		return class, append(rules.Charges(rules.Pool, key, "requests", s.Amount(1, most)),
			rules.Charges(rules.Pool, key, "tokens", s.Amount(1, most))...)
	}
	return class, rules.Charges(rules.Pool, key, []string{"requests", "tokens"}[s.Rand.IntN(2)], s.Amount(1, most))
}
