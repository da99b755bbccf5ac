package cluster

import (
	"fmt"
	"slices"
	"time"
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
