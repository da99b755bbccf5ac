package server

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server/convert"
	"github.com/quorlease/quorlease/cluster"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/match"
)

// Report takes what a client says of providers, first because others wait for it, and
// books what it admitted by itself while nobody answered.
func (a *admission) Report(ctx context.Context, r *quorleasev1.ReportRequest) (*quorleasev1.ReportResponse, error) {
	owner := identityOf(ctx).Name
	admitted, err := convert.Report(r, owner)
	if err != nil {
		return nil, err
	}
	controlled, err := a.hear(ctx, r, owner)
	if err != nil {
		return nil, err
	}
	answer := &quorleasev1.ReportResponse{}
	if admitted != nil {
		result, err := a.server.node.Do(ctx, admitted, 0)
		if err != nil && len(controlled) > 0 {
			// The first half has happened, whatever became of this one.
			err = fmt.Errorf("%w: what providers said was heard: %w", cluster.ErrOutcomeUnknown, err)
		}
		if err != nil {
			return nil, err
		}
		answer = convert.ReportAnswer(result.GetAdmitted())
	}
	answer.Controlled = controlled
	// Last: these are differences, and whoever gets an error sends them again.
	if tried, ok := convert.Attempts(r); ok {
		a.server.node.CountTried(r.GetClient(), tried)
	}
	return answer, nil
}

// hear lets the buckets hear what providers said, all of it or nothing.
func (a *admission) hear(
	ctx context.Context, r *quorleasev1.ReportRequest, owner string,
) ([]*quorleasev1.Controlled, error) {
	if len(r.GetFeedback()) == 0 {
		return nil, nil
	}
	op := &logv1.Feedback{Owner: owner, Client: r.GetClient()}
	// heardBy says for each signal which answer of a provider it is of.
	var heardBy []int
	for i, f := range r.GetFeedback() {
		targets, err := a.listening(ctx, f, r.GetClient())
		if err != nil {
			return nil, err
		}
		for _, target := range targets {
			op.Signals = append(op.Signals, convert.Signal(f, target))
			heardBy = append(heardBy, i)
		}
	}
	answers := make([][]*logv1.Controlled, len(r.GetFeedback()))
	if len(op.GetSignals()) > 0 {
		result, err := a.server.node.Do(ctx, &logv1.Operation{Kind: &logv1.Operation_Feedback{Feedback: op}}, 0)
		if err != nil {
			return nil, blame(err, heardBy)
		}
		for at, s := range result.GetFeedback().GetSignals() {
			answers[heardBy[at]] = append(answers[heardBy[at]], s)
		}
	}
	controlled := make([]*quorleasev1.Controlled, len(answers))
	for i, signals := range answers {
		controlled[i] = convert.Controlled(signals)
	}
	return controlled, nil
}

// listening are the buckets that hear one answer: that which it names, or those that
// its attributes fit, which may be none.
func (a *admission) listening(ctx context.Context, f *quorleasev1.Feedback, client string) ([]match.Target, error) {
	work := convert.Heard(f, client)
	if work == nil {
		return []match.Target{{Limit: f.GetLimit(), Key: f.GetKey()}}, nil
	}
	targets, err := a.server.expander.Listening(ctx, work)
	var refused *fsm.Refused
	if errors.As(err, &refused) {
		return nil, nil
	}
	return targets, err
}

// blame makes the field of a refused signal that of the request.
func blame(err error, heardBy []int) error {
	var refused *fsm.Refused
	if !errors.As(err, &refused) {
		return err
	}
	for at, i := range heardBy {
		if name, found := strings.CutPrefix(refused.GetField(), fmt.Sprintf("feedback[%d].", at)); found {
			theirs := proto.CloneOf(refused.Refusal)
			theirs.Field = fmt.Sprintf("feedback[%d].%s", i, name)
			return &fsm.Refused{Refusal: theirs}
		}
	}
	return err
}
