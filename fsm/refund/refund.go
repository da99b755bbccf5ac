// Package refund gives tokens back to the buckets that they came from. It is pure, and
// works on a state that it is given.
package refund

import (
	"math/bits"

	"github.com/quorlease/quorlease/fsm/state"
)

// Part is tokens that go back, and where they came from.
type Part struct {
	LimitID, DimensionID uint32
	Key, Class           string
	Tokens               int64
	// Took is what came from the class's own sub-bucket, in units of which a token had
	// TookUnit.
	Took, TookUnit int64
}

// Give gives tokens back as the limit is now, and says how many went back: none where
// key or dimension are gone, and none that the burst has no room for.
func Give(s *state.State, p Part) int64 {
	lim, k := s.LimitByID(p.LimitID), s.FindKey(p.LimitID, p.Key)
	if p.Tokens <= 0 || lim == nil || k == nil {
		return 0
	}
	k = s.ChangeKey(lim, k)
	d := lim.Now().FindID(p.DimensionID)
	if d < 0 {
		return 0
	}
	dimension, one := &lim.Now().For(k.Name).Dimensions[d], &k.Held(d).Bucket
	one.Advance(dimension.Shape, s.Now)
	class, known := dimension.Class(p.Class)
	took := rescale(p.Took, p.TookUnit, dimension.Shape.Unit())
	if !known || len(dimension.Classes) > 0 && p.Class == "" {
		// The class is gone: nothing goes back to a sub-bucket of another.
		took = 0
	}
	before := one.Remaining(dimension.Shape)
	one.Refund(dimension.Shape, class, p.Tokens, took)
	// What the burst had no room for did not go back. In whole tokens the
	// difference may be one less than what came, never more than was owed.
	return max(0, min(p.Tokens, one.Remaining(dimension.Shape)-before))
}

// rescale makes units of which a token has from into units of which it has to,
// rounded down: the limit may have changed since the grant.
func rescale(units, from, to int64) int64 {
	if from == to || from <= 0 {
		return units
	}
	hi, lo := bits.Mul64(uint64(units), uint64(to))
	if hi >= uint64(from) {
		return 1<<63 - 1
	}
	q, _ := bits.Div64(hi, lo, uint64(from))
	return int64(min(q, 1<<63-1))
}
