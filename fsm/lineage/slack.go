package lineage

import (
	"math"
	"math/bits"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
)

// electionMost is the longest silence of the authority that is no outage: who is cut off
// in it uses its share, and what is refilled is not withheld.
const electionMost = 3 * time.Second

// Slack bounds by how much spending can trail debiting (G2): the life of what nodes hold,
// that of a lease and the time in which the rate hands out what can still come back, and
// where clients share the limit while nobody answers an election. tokens is what the rate
// hands out in that time, rounded up.
func Slack(limit *logv1.Limit, d *Dimension, held time.Duration) (slack time.Duration, tokens int64) {
	life, open := held+time.Duration(limit.GetLease()), d.Spec.GetMaxOpen()
	if limit.GetOnQuorumLoss() == logv1.OnQuorumLoss_ON_QUORUM_LOSS_SHARE {
		life += electionMost
	}
	if d.Spec.GetAmount() == 0 {
		return life, open
	}
	tokens = d.Shape.TokensIn(life)
	tokens += min(open, math.MaxInt64-1-tokens) + 1
	amount, interval := Rate(d.Spec, d.Target)
	hi, lo := bits.Mul64(uint64(open), uint64(interval))
	if hi >= uint64(amount) {
		return math.MaxInt64, tokens
	}
	wait, rest := bits.Div64(hi, lo, uint64(amount))
	if rest > 0 {
		wait++
	}
	if wait > math.MaxInt64-uint64(life) {
		return math.MaxInt64, tokens
	}
	return life + time.Duration(wait), tokens
}
