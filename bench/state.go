package bench

import (
	"context"
	"fmt"
	"time"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

// SameState waits until every node has said its digest at one common index, and
// fails if they differ there (G9). An idle leader ticks once a second, so that
// the nodes are asked often enough to catch each at the same entry.
func (n *Nodes) SameState(ctx context.Context) (index uint64, hash string, err error) {
	members := n.Members()
	seen := make([]map[uint64]string, len(members))
	for i := range seen {
		seen[i] = map[uint64]string{}
	}
	for {
		for i, member := range members {
			state, err := n.state(ctx, member)
			if err == nil {
				seen[i][state.GetAppliedIndex()] = state.GetHash()
			}
		}
		for index, hash := range seen[0] {
			switch agreeing, all := agree(seen[1:], index, hash); {
			case !all:
			case !agreeing:
				return index, "", fmt.Errorf("states differ at entry %d: %v", index, at(seen, index))
			default:
				return index, hash, nil
			}
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return 0, "", fmt.Errorf("wait for %d nodes at one entry: %w", len(members), err)
		}
	}
}

// agree says whether all have a digest at index, and whether each is hash.
func agree(others []map[uint64]string, index uint64, hash string) (agreeing, all bool) {
	agreeing, all = true, true
	for _, other := range others {
		theirs, known := other[index]
		all = all && known
		agreeing = agreeing && theirs == hash
	}
	return agreeing, all
}

func at(seen []map[uint64]string, index uint64) []string {
	var hashes []string
	for _, one := range seen {
		hashes = append(hashes, one[index])
	}
	return hashes
}

func (n *Nodes) state(ctx context.Context, i int) (*quorleasev1.ClusterStateResponse, error) {
	conn, err := n.Conn(i)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return quorleasev1.NewClusterClient(conn).State(ctx, &quorleasev1.ClusterStateRequest{})
}
