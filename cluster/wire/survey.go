package wire

import (
	"context"
	"errors"
	"time"
)

// Survey is what a number of peers make of this node.
type Survey struct {
	// Own is how many let it in and belong to a cluster: to this node's.
	Own int
	// Unknown is how many say that it is no member of their cluster, which is
	// this node's.
	Unknown int
	// Stranger is what one of another cluster answered, if any did.
	Stranger error
}

// Survey shakes hands with each peer and hangs up. One that can't be reached
// says nothing.
func (d *Dialer) Survey(ctx context.Context, addresses []string) (found Survey) {
	for _, address := range addresses {
		conn, peer, err := d.Dial(ctx, GRPC, address)
		switch {
		case err == nil:
			_ = conn.Close()
			if peer.ClusterID != "" {
				found.Own++
			}
		case errors.Is(err, ErrOtherCluster):
			found.Stranger = err
		case errors.Is(err, ErrUnknownNode):
			found.Unknown++
		}
	}
	return found
}

// strangersRounds and strangersPause bound how long a starting node looks for
// one of its own among the peers it was told to join. A whole cluster that
// starts at once is there by then.
const (
	strangersRounds = 4
	strangersPause  = time.Second
)

// Strangers is what a node of another cluster answered, where after a while none of
// this one's has. One of its own is enough: an address may have been given to somebody
// else (R35). It is nil where nobody answers. When ctx ends it says
// what is known.
func (d *Dialer) Strangers(ctx context.Context, addresses []string) error {
	for round := range strangersRounds {
		found := d.Survey(ctx, addresses)
		if found.Own > 0 || found.Stranger == nil {
			return nil
		}
		if round == strangersRounds-1 {
			return found.Stranger
		}
		select {
		case <-time.After(strangersPause):
		case <-ctx.Done():
			return found.Stranger
		}
	}
	return nil
}
