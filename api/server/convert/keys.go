package convert

import (
	"github.com/quorlease/quorlease/api/limitsfile"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/fsm"
)

// Keys checks what is asked of the keys of a limit, and begins to look for them.
func Keys(r *quorleasev1.LimitsKeysRequest) (*fsm.KeyWalk, error) {
	c := &checker{}
	c.problem("limit", limitsfile.NameProblem(r.GetLimit()))
	if r.GetPrefix() != "" {
		c.problem("prefix", limitsfile.KeyProblem(r.GetPrefix()))
	}
	top := c.top(r.GetTop())
	return fsm.NewKeyWalk(r.GetLimit(), r.GetPrefix(), top), c.err()
}

// KeysAnswer shows what a walk that is over has found.
func KeysAnswer(walk *fsm.KeyWalk) *quorleasev1.LimitsKeysResponse {
	answer := &quorleasev1.LimitsKeysResponse{Total: int64(walk.Total), Matching: int64(walk.Matching)}
	for _, v := range walk.Found() {
		answer.Keys = append(answer.Keys, &quorleasev1.KeyState{
			Key: v.Key, Dimension: v.Dimension, Level: v.Level, Debt: v.Debt, Burst: v.Burst, LeftPpm: v.Left,
			OpenLeases: int64(v.OpenLeases), Control: controlState(v.Control, v.At),
		})
	}
	return answer
}
