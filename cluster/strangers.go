package cluster

import (
	"fmt"
	"slices"
)

// refuseStrangers stops a node that was started among another cluster's nodes:
// its data directory, or its --join, is not the one that was meant.
func (n *Node) refuseStrangers(stop <-chan struct{}) {
	ctx, cancel := untilClosed(stop)
	defer cancel()
	others := slices.DeleteFunc(slices.Clone(n.config.Join), func(a string) bool { return a == n.advertise })
	if err := n.dialer.Strangers(ctx, others); err != nil && ctx.Err() == nil {
		n.fail(fmt.Errorf("%w: none of --join is a node of this data directory's cluster: %w", ErrRefused, err))
	}
}
