package server

import (
	"context"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server/convert"
	"github.com/quorlease/quorlease/api/server/sharing"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// admission is the service Admission.
type admission struct {
	quorleasev1.UnimplementedAdmissionServer
	server *Server
}

// Acquire decides over one request.
func (a *admission) Acquire(ctx context.Context, r *quorleasev1.AcquireRequest) (*quorleasev1.AcquireResponse, error) {
	op, err := convert.Acquire(r, identityOf(ctx).Name)
	if err != nil {
		return nil, err
	}
	result, err := a.server.acquire(ctx, r, op)
	if err != nil {
		return nil, err
	}
	answer := convert.AcquireAnswer(op.GetAcquire(), result)
	answer.Fallbacks = sharing.Fallbacks(ctx, a.server.node, r.KnownRevision, op.GetAcquire())
	return answer, nil
}

// Settle reports what a lease really used.
func (a *admission) Settle(ctx context.Context, r *quorleasev1.SettleRequest) (*quorleasev1.SettleResponse, error) {
	op, err := convert.Settle(r, identityOf(ctx).Name)
	result, err := a.lease(ctx, op, err)
	if err != nil {
		return nil, err
	}
	return convert.SettleAnswer(result), nil
}

// Release gives a lease back unspent.
func (a *admission) Release(ctx context.Context, r *quorleasev1.ReleaseRequest) (*quorleasev1.ReleaseResponse, error) {
	op, err := convert.Release(r, identityOf(ctx).Name)
	result, err := a.lease(ctx, op, err)
	if err != nil {
		return nil, err
	}
	return convert.ReleaseAnswer(result), nil
}

// Renew prolongs the time to settle.
func (a *admission) Renew(ctx context.Context, r *quorleasev1.RenewRequest) (*quorleasev1.RenewResponse, error) {
	op, err := convert.Renew(r, identityOf(ctx).Name)
	result, err := a.lease(ctx, op, err)
	if err != nil {
		return nil, err
	}
	return convert.RenewAnswer(result), nil
}

// lease carries out an operation on a lease, unless making it failed.
func (a *admission) lease(ctx context.Context, op *logv1.Operation, wrong error) (*logv1.LeaseResult, error) {
	if wrong != nil {
		return nil, wrong
	}
	result, err := a.server.node.Do(ctx, op, 0)
	return result.GetLease(), err
}

// Peek says what an acquire would find.
func (a *admission) Peek(ctx context.Context, r *quorleasev1.PeekRequest) (*quorleasev1.PeekResponse, error) {
	op, err := convert.Peek(r)
	if err != nil {
		return nil, err
	}
	described := convert.Described(r, op)
	var result *logv1.AcquireResult
	var refused error
	err = a.server.node.View(ctx, false, func(m *fsm.Machine, now bucket.Instant) {
		if refused = a.server.expander.Peek(m, op, described); refused == nil {
			result, refused = m.Peek(now, op)
		}
	})
	if err != nil {
		return nil, err
	}
	if refused != nil {
		return nil, refused
	}
	return convert.PeekAnswer(result), nil
}
