package wire

import (
	"context"
	"errors"
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
