package grpcmw

import (
	"context"
	"errors"
	"strconv"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/quorlease/quorlease/client"
)

// Refused is a call that is refused, as gRPC says it. It names no key: that may be
// somebody's name.
type Refused struct {
	// Code is what most of them are where it is zero: RESOURCE_EXHAUSTED.
	Code    codes.Code
	Message string
	// Reason is that of an ErrorInfo. Empty: there is none.
	Reason string
	// Violations are those of a QuotaFailure, the longest wait first. None: there is no
	// such detail.
	Violations []Violation
	// Wait goes into a RetryInfo. 0: there is none, since no waiting helps.
	Wait time.Duration
	// Final: a client that retries by itself has to stop, whatever the wait.
	Final bool
}

// Violation is one limit's no.
type Violation struct {
	// Subject is "client", or "limit:" with the limit's name and the dimension's.
	Subject string
	// Reason is RATE, RETRY_BUDGET and so on.
	Reason string
}

// domain is that of every reason.
const domain = "quorlease"

// pushback is the trailer by which a server tells clients that retry by themselves
// when to, in milliseconds, or with -1 not to (gRPC proposal A6).
const pushback = "grpc-retry-pushback-ms"

// Err is the status with its details.
func (r Refused) Err() error {
	if r.Code == codes.OK {
		r.Code = codes.ResourceExhausted
	}
	var details []protoadapt.MessageV1
	if len(r.Violations) > 0 {
		quota := &errdetails.QuotaFailure{}
		for _, v := range r.Violations {
			quota.Violations = append(quota.Violations, &errdetails.QuotaFailure_Violation{
				Subject: v.Subject, Description: v.Reason,
			})
		}
		details = append(details, quota)
	}
	if r.Wait > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(r.Wait)})
	}
	if r.Reason != "" {
		details = append(details, &errdetails.ErrorInfo{Reason: r.Reason, Domain: domain})
	}
	refused := status.New(r.Code, r.Message)
	if detailed, err := refused.WithDetails(details...); err == nil {
		refused = detailed
	}
	return refused.Err()
}

// Trailer is what to send with it, for grpc.SetTrailer; nil where it says nothing
// about retries.
func (r Refused) Trailer() metadata.MD {
	switch {
	case r.Final:
		return metadata.Pairs(pushback, "-1")
	case r.Wait > 0:
		whole := (r.Wait + time.Millisecond - 1) / time.Millisecond
		return metadata.Pairs(pushback, strconv.FormatInt(int64(whole), 10))
	default:
		return nil
	}
}

// refusalOf is that of a call that is denied: RESOURCE_EXHAUSTED with a QuotaFailure
// that names every limit that denies, the longest wait first, and a RetryInfo, unless no
// waiting helps. A spent retry budget is final: the client is to stop by itself.
func refusalOf(d *client.Decision) Refused {
	r := Refused{Message: "denied"}
	for i, denial := range d.Denials {
		if i == 0 {
			r.Message += ": " + denial.Reason
		}
		r.Violations = append(r.Violations, Violation{Subject(denial.Limit, denial.Dimension), denial.Reason})
		r.Final = r.Final || denial.Never || denial.Reason == "RETRY_BUDGET" || denial.Reason == "ATTEMPTS"
	}
	if wait, never := d.RetryAfter(); !never {
		// 0 would say that no waiting helps.
		r.Wait = max(wait, time.Nanosecond)
	}
	return r
}

// Subject is that of a violation of a limit, or of what is no limit's.
func Subject(limit, dimension string) string {
	if limit == "" {
		return "client"
	}
	return "limit:" + limit + "/" + dimension
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
