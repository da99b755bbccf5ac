package server

import (
	"context"
	"errors"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server/convert"
	"github.com/quorlease/quorlease/api/server/expand"
	"github.com/quorlease/quorlease/cluster"
	"github.com/quorlease/quorlease/fsm"
)

// acquire carries out op, which was made of r: it is expanded by the limits now,
// again where they have changed meanwhile.
func (s *Server) acquire(
	ctx context.Context, r *quorleasev1.AcquireRequest, op *logv1.Operation,
) (*logv1.AcquireResult, error) {
	described := convert.Described(r, op.GetAcquire())
	for tries := 1; ; tries++ {
		if err := s.expander.Acquire(ctx, op.GetAcquire(), described); err != nil {
			return nil, err
		}
		result, err := s.node.Await(ctx, &cluster.Pending{
			Operation: op, Attempt: r.GetAttempt(), MaxWait: r.GetMaxWait().AsDuration(), Team: r.GetAttributes()["team"],
		})
		var refused *fsm.Refused
		if described == nil || tries == expand.TriesMax ||
			!errors.As(err, &refused) || !expand.IsStale(refused.Refusal) {
			return result.GetAcquire(), err
		}
		if err := s.expander.Refresh(ctx); err != nil {
			return nil, err
		}
	}
}

// patienceOf is how long a call may take that does not say: what it wants to wait
// is added to what answering takes.
func patienceOf(request any, patience time.Duration) time.Duration {
	if r, waits := request.(interface{ GetMaxWait() *durationpb.Duration }); waits {
		patience += min(max(r.GetMaxWait().AsDuration(), 0), convert.WaitMax)
	}
	return patience
}
