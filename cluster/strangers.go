package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorlease/quorlease/cluster/wire"
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
	for round := range strangersRounds {
		own, stranger := n.lookAround(ctx)
		switch {
		case own || stranger == nil || ctx.Err() != nil:
			return
		case round == strangersRounds-1:
			n.fail(fmt.Errorf("%w: none of --join is a node of this data directory's cluster: %w", ErrRefused, stranger))
			return
		}
		select {
		case <-time.After(strangersPause):
		case <-stop:
			return
		}
	}
}

// lookAround shakes hands with the peers to join. own says that one belongs to
// this node's cluster; stranger is what one of another cluster answered.
func (n *Node) lookAround(ctx context.Context) (own bool, stranger error) {
	for _, address := range n.config.Join {
		if address == n.advertise {
			continue
		}
		conn, peer, err := n.dialer.Dial(ctx, wire.GRPC, address)
		switch {
		case errors.Is(err, wire.ErrOtherCluster):
			stranger = err
		case err == nil:
			_ = conn.Close()
			if peer.ClusterID != "" {
				return true, nil
			}
		}
	}
	return false, stranger
}
