// Package limits is the service Limits.
package limits

import (
	"context"
	"errors"

	"github.com/quorlease/quorlease/api/limitsfile"
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server/convert"
	"github.com/quorlease/quorlease/api/server/keys"
	"github.com/quorlease/quorlease/cluster/queue"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/escrow"
)

// Node carries out changes, shows its replica and says what waits.
type Node interface {
	// Do waits for the result. A refusal is a *fsm.Refused.
	Do(ctx context.Context, op *logv1.Operation, attempt uint32) (*logv1.Result, error)
	// View calls read at once where stale.
	View(ctx context.Context, stale bool, read func(*fsm.Machine, bucket.Instant)) error
	// Queues are what waits at a key of a limit.
	Queues(ctx context.Context, limit, key string) []queue.ClassState
}

// Service is the service Limits of one node.
type Service struct {
	quorleasev1.UnimplementedLimitsServer
	node Node
	// author says how the history calls whoever calls.
	author func(context.Context) string
}

// New returns the service.
func New(node Node, author func(context.Context) string) *Service {
	return &Service{node: node, author: author}
}

// Apply changes limits and retry budgets as one change, or shows what it would
// change.
func (s *Service) Apply(
	ctx context.Context, r *quorleasev1.LimitsApplyRequest,
) (*quorleasev1.LimitsApplyResponse, error) {
	op, err := limitsfile.ResolveAll(r)
	if err != nil {
		return nil, err
	}
	op.Author = s.author(ctx)
	var result *logv1.LimitsResult
	if r.GetDryRun() {
		err = s.read(ctx, false, func(m *fsm.Machine, _ bucket.Instant) (err error) {
			result, err = m.PlanLimits(op)
			return err
		})
	} else {
		result, err = s.change(ctx, op)
	}
	if err != nil {
		return nil, err
	}
	return convert.ApplyAnswer(result), nil
}

func (s *Service) change(ctx context.Context, op *logv1.ApplyLimits) (*logv1.LimitsResult, error) {
	result, err := s.node.Do(ctx, &logv1.Operation{Kind: &logv1.Operation_ApplyLimits{ApplyLimits: op}}, 0)
	return result.GetLimits(), err
}

// read is View for a read that can be refused.
func (s *Service) read(ctx context.Context, stale bool, read func(*fsm.Machine, bucket.Instant) error) error {
	var refused error
	err := s.node.View(ctx, stale, func(m *fsm.Machine, now bucket.Instant) { refused = read(m, now) })
	if err != nil {
		return err
	}
	return refused
}

// List shows limits and retry budgets with every default filled in.
func (s *Service) List(ctx context.Context, r *quorleasev1.LimitsListRequest) (*quorleasev1.LimitsListResponse, error) {
	if r.GetName() != "" {
		if err := convert.Name("name", r.GetName()); err != nil {
			return nil, err
		}
	}
	answer := &quorleasev1.LimitsListResponse{}
	err := s.read(ctx, r.GetStale(), func(m *fsm.Machine, _ bucket.Instant) error {
		answer.Revision = m.Revision()
		limits, budgets := m.Limits(r.GetName())
		for _, limit := range limits {
			answer.Limits = append(answer.Limits, limitsfile.Describe(limit))
		}
		for _, budget := range budgets {
			answer.RetryBudgets = append(answer.RetryBudgets, limitsfile.DescribeBudget(budget))
		}
		if r.GetName() != "" && len(limits)+len(budgets) == 0 {
			return notFound(r.GetName())
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return answer, nil
}

func notFound(name string) error {
	return &fsm.Refused{Refusal: &logv1.Refusal{
		Cause:   logv1.Refusal_CAUSE_LIMIT_NOT_FOUND,
		Message: limitsfile.Quote(name) + ": there is no limit and no retry budget of this name",
	}}
}

// Delete removes a limit, or a retry budget where no limit has the name.
func (s *Service) Delete(
	ctx context.Context, r *quorleasev1.LimitsDeleteRequest,
) (*quorleasev1.LimitsDeleteResponse, error) {
	name := r.GetName()
	if err := convert.Name("name", name); err != nil {
		return nil, err
	}
	op := &logv1.ApplyLimits{
		Delete: []string{name}, ExpectedRevision: r.ExpectedRevision, Author: s.author(ctx),
	}
	result, err := s.change(ctx, op)
	if isNotFound(err) {
		op = &logv1.ApplyLimits{
			DeleteRetryBudgets: []string{name}, ExpectedRevision: r.ExpectedRevision, Author: op.GetAuthor(),
		}
		result, err = s.change(ctx, op)
	}
	switch {
	case isNotFound(err):
		return nil, notFound(name)
	case err != nil:
		return nil, err
	}
	return &quorleasev1.LimitsDeleteResponse{Revision: result.GetRevision()}, nil
}

func isNotFound(err error) bool {
	var refused *fsm.Refused
	return errors.As(err, &refused) && refused.GetCause() == logv1.Refusal_CAUSE_LIMIT_NOT_FOUND
}

// Inspect shows one key of one limit.
func (s *Service) Inspect(
	ctx context.Context, r *quorleasev1.LimitsInspectRequest,
) (*quorleasev1.LimitsInspectResponse, error) {
	if err := convert.Inspect(r); err != nil {
		return nil, err
	}
	var found *fsm.Inspection
	var held []escrow.Outstanding
	err := s.read(ctx, r.GetStale(), func(m *fsm.Machine, now bucket.Instant) (err error) {
		held = m.Escrow().Of(r.GetLimit(), r.GetKey())
		found, err = m.Inspect(now, r.GetLimit(), r.GetKey())
		return err
	})
	if err != nil {
		return nil, err
	}
	answer := convert.InspectAnswer(found)
	answer.Escrow = convert.EscrowStates(held)
	answer.Queues = convert.QueueStates(s.node.Queues(ctx, r.GetLimit(), r.GetKey()))
	return answer, nil
}

// Keys shows the most spent keys of a limit.
func (s *Service) Keys(ctx context.Context, r *quorleasev1.LimitsKeysRequest) (*quorleasev1.LimitsKeysResponse, error) {
	return keys.Of(ctx, s.node, r)
}

// Adjust changes a level by hand.
func (s *Service) Adjust(
	ctx context.Context, r *quorleasev1.LimitsAdjustRequest,
) (*quorleasev1.LimitsAdjustResponse, error) {
	op, err := convert.Adjust(r, s.author(ctx))
	if err != nil {
		return nil, err
	}
	result, err := s.node.Do(ctx, op, 0)
	if err != nil {
		return nil, err
	}
	return convert.AdjustAnswer(result.GetAdjust()), nil
}

// History shows past changes, the newest first.
func (s *Service) History(
	ctx context.Context, r *quorleasev1.LimitsHistoryRequest,
) (*quorleasev1.LimitsHistoryResponse, error) {
	answer := &quorleasev1.LimitsHistoryResponse{}
	err := s.node.View(ctx, r.GetStale(), func(m *fsm.Machine, _ bucket.Instant) {
		// A number beyond what is kept means all of it.
		for _, revision := range m.History(int(min(r.GetLimit(), 1<<20))) {
			answer.Revisions = append(answer.Revisions, convert.RevisionAnswer(revision))
		}
	})
	if err != nil {
		return nil, err
	}
	return answer, nil
}
