package cluster

import (
	"context"

	"github.com/hashicorp/raft"
)

// refusalsMax is in how many rounds in a row, a second apart, a node without a
// leader must be refused before it believes that it was removed: a member that
// was just added is refused by those who have not heard of it yet.
const refusalsMax = 3

// disowned reports whether most of the other voters say that this node is no
// member. A leader stops talking to a follower that it removes, often before the
// follower has heard that the removal is committed, and nobody tells it later
// (R33): it would campaign for ever. A voter that can't be reached says nothing.
func (n *Node) disowned(ctx context.Context) bool {
	var others []string
	for _, s := range n.configuration().Servers {
		if s.ID != n.id && s.Suffrage == raft.Voter {
			others = append(others, string(s.Address))
		}
	}
	return n.dialer.Survey(ctx, others).Unknown > len(others)/2
}
