package grpcmw

import (
	"context"
	"errors"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/quorlease/quorlease/client"
)

// refusal is the error of a call that is denied: RESOURCE_EXHAUSTED with a
// QuotaFailure that names every limit that denies, the longest wait first, and a
// RetryInfo, unless no waiting helps. It names no key: that may be somebody's
// name.
func refusal(d *client.Decision) error {
	message := "denied"
	quota := &errdetails.QuotaFailure{}
	for i, denial := range d.Denials {
		if i == 0 {
			message += ": " + denial.Reason
		}
		subject := "client"
		if denial.Limit != "" {
			subject = "limit:" + denial.Limit + "/" + denial.Dimension
		}
		quota.Violations = append(quota.Violations, &errdetails.QuotaFailure_Violation{
			Subject: subject, Description: denial.Reason,
		})
	}
	details := []protoadapt.MessageV1{quota}
	if wait, never := d.RetryAfter(); !never {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(wait)})
	}
	refused := status.New(codes.ResourceExhausted, message)
	if detailed, err := refused.WithDetails(details...); err == nil {
		refused = detailed
	}
	return refused.Err()
}

// undecided is the error of a call that could not be decided. What went wrong
// inside is nobody's business outside.
func undecided(ctx context.Context, err error) error {
	var bad *client.BadRequestError
	switch {
	case errors.As(err, &bad):
		return status.Error(codes.InvalidArgument, "the call can't be counted: "+bad.Error())
	case ctx.Err() != nil:
		return status.FromContextError(ctx.Err()).Err()
	default:
		return status.Error(codes.Unavailable, "the call could not be checked against its limit")
	}
}
