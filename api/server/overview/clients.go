package overview

import (
	"context"
	"time"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server/convert"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// Clients is the service Clients of a node. It is safe for concurrent use.
type Clients struct {
	quorleasev1.UnimplementedClientsServer
	node Node
}

// NewClients returns the service.
func NewClients(node Node) *Clients { return &Clients{node: node} }

// List shows the clients with most retries. It reads this node's replica: counts
// are reported late anyway.
func (c *Clients) List(
	ctx context.Context, r *quorleasev1.ClientsListRequest,
) (*quorleasev1.ClientsListResponse, error) {
	top, err := convert.Top(r)
	if err != nil {
		return nil, err
	}
	answer, at, over := &quorleasev1.ClientsListResponse{}, time.Now(), c.node.Overview().Over()
	err = c.node.View(ctx, true, func(m *fsm.Machine, now bucket.Instant) {
		answer.Total = int64(m.Counts().Clients)
		for _, stat := range m.Clients(now, top) {
			answer.Clients = append(answer.Clients, rowAt(at, stat, over))
		}
	})
	if err != nil {
		return nil, err
	}
	return answer, nil
}
