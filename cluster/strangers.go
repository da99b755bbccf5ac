package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/raft"
)

// strangersRounds and strangersPause bound how long a starting node looks for
// one of its own among the peers it was told to join. A whole cluster that
// starts at once is there by then.
const (
	strangersRounds = 4
	strangersPause  = time.Second
)

// refuseStrangers stops a node that was started among another cluster's nodes:
// its data directory, or its --join, is not the one that was meant. One peer of
// its own is enough to go on: an address may have been given to somebody else
// (R35), and that must not stop a healthy cluster.
func (n *Node) refuseStrangers(stop <-chan struct{}) {
	ctx, cancel := untilClosed(stop)
	defer cancel()
	others := slices.DeleteFunc(slices.Clone(n.config.Join), func(a string) bool { return a == n.advertise })
	for round := range strangersRounds {
		found := n.dialer.Survey(ctx, others)
		switch {
		case found.Own > 0 || found.Stranger == nil || ctx.Err() != nil:
			return
		case round == strangersRounds-1:
			n.fail(fmt.Errorf("%w: none of --join is a node of this data directory's cluster: %w",
				ErrRefused, found.Stranger))
			return
		}
		select {
		case <-time.After(strangersPause):
		case <-stop:
			return
		}
	}
}

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
