package convert

import (
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/cluster/identity"
	"github.com/quorlease/quorlease/fsm/escrow"
)

// EscrowStates shows what nodes were given of a key.
func EscrowStates(list []escrow.Outstanding) []*quorleasev1.EscrowState {
	var out []*quorleasev1.EscrowState
	for _, o := range list {
		out = append(out, &quorleasev1.EscrowState{
			Dimension: o.Dimension, Class: o.Class, Node: identity.NameOf(o.Node), Tokens: o.Tokens, Void: o.Void,
		})
	}
	return out
}
