package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	rpccode "google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/quorlease/quorlease/api/limitsfile"
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/api/server/decode"
	"github.com/quorlease/quorlease/cluster"
	"github.com/quorlease/quorlease/cluster/events"
	"github.com/quorlease/quorlease/fsm"
)

// Domain is the domain of every reason.
const Domain = "quorlease"

// Cause is one row of the error table: what can be said of a call that was not
// answered. A denial is an answer and has no row.
type Cause struct {
	// Name says it in words.
	Name string
	Code codes.Code
	// Reason is that of the ErrorInfo. Empty where the code says it all, because
	// the row also stands for errors that the transport makes.
	Reason string
	// HTTP is the status that HTTP answers with.
	HTTP int
	// MayHaveHappened: nobody can say that the operation did not happen. Repeat it
	// with the same lease id (G4).
	MayHaveHappened bool
	// RetryAfter goes into RetryInfo where it is positive: waiting helps.
	RetryAfter time.Duration

	// sentinel is the error of this project that the row stands for, if it is one.
	sentinel error
	// refusal is the state machine's refusal that the row stands for.
	refusal logv1.Refusal_Cause
}

// CodeName is the code as the gRPC documentation writes it: "INVALID_ARGUMENT".
func (c Cause) CodeName() string { return rpccode.Code(c.Code).String() }

// Errors that the servers themselves detect. Those of a node are in package
// cluster.
var (
	errBadField        = decode.ErrBadRequest
	errUnauthenticated = errors.New("no credential")
	errNoRight         = errors.New("no right")
	errBug             = errors.New("internal error")
	errNoService       = errors.New("unknown service")

	// ErrTooLarge: a message has more bytes or parts than one may have.
	ErrTooLarge = errors.New("message too large")
	// ErrHost: the Host header names none of this node's names.
	ErrHost = errors.New("host not allowed")
	// ErrOrigin: a browser sent it for a page of another origin.
	ErrOrigin = errors.New("origin not allowed")
	// ErrContentType: the body is not announced as JSON.
	ErrContentType = errors.New("content type not supported")
	// ErrPath: nothing is served there.
	ErrPath = errors.New("no such path")
	// ErrMethod: the path is not served with this method.
	ErrMethod = errors.New("method not allowed")
)

// causes is the one table, both ways: the first row that fits counts.
var causes = []Cause{
	{
		Name: "bad field", Code: codes.InvalidArgument, Reason: "BAD_FIELD", HTTP: 400,
		sentinel: errBadField, refusal: logv1.Refusal_CAUSE_BAD_FIELD,
	},
	{
		Name: "unknown limit", Code: codes.NotFound, Reason: "LIMIT_NOT_FOUND", HTTP: 404,
		refusal: logv1.Refusal_CAUSE_LIMIT_NOT_FOUND,
	},
	{
		Name: "unknown lease, or another's", Code: codes.NotFound, Reason: "LEASE_NOT_FOUND", HTTP: 404,
		refusal: logv1.Refusal_CAUSE_LEASE_NOT_FOUND,
	},
	{
		Name: "lease id used with other content", Code: codes.AlreadyExists, Reason: "LEASE_CONFLICT", HTTP: 409,
		refusal: logv1.Refusal_CAUSE_LEASE_CONFLICT,
	},
	{
		Name: "stale revision", Code: codes.Aborted, Reason: "REVISION_CHANGED", HTTP: 409,
		refusal: logv1.Refusal_CAUSE_REVISION_CHANGED,
	},
	{
		Name: "no room for a tombstone", Code: codes.ResourceExhausted, Reason: "LEASE_LIMIT", HTTP: 429,
		refusal: logv1.Refusal_CAUSE_LEASE_LIMIT,
	},
	{
		Name: "no room for a report", Code: codes.ResourceExhausted, Reason: "REPORT_LIMIT", HTTP: 429,
		RetryAfter: time.Minute, refusal: logv1.Refusal_CAUSE_REPORT_LIMIT,
	},
	// A deadline that passed after the proposal is both, and says less.
	{
		Name: "deadline", Code: codes.DeadlineExceeded, HTTP: 504, MayHaveHappened: true,
		sentinel: cluster.ErrDeadline,
	},
	{
		Name: "cancelled by the caller", Code: codes.Canceled, HTTP: 499, MayHaveHappened: true,
		sentinel: context.Canceled,
	},
	// So is what was sent again and found no leader: it comes before what is certain.
	{
		Name: "leadership lost after proposing", Code: codes.Unavailable, Reason: "OUTCOME_UNKNOWN", HTTP: 503,
		MayHaveHappened: true, RetryAfter: 100 * time.Millisecond, sentinel: cluster.ErrOutcomeUnknown,
	},
	{
		Name: "unknown member", Code: codes.NotFound, Reason: "NODE_NOT_FOUND", HTTP: 404,
		sentinel: cluster.ErrUnknownMember,
	},
	{
		Name: "node not ready for it", Code: codes.FailedPrecondition, Reason: "NODE_NOT_READY", HTTP: 409,
		RetryAfter: time.Second, sentinel: cluster.ErrNotReady,
	},
	{
		Name: "members are being changed", Code: codes.Aborted, Reason: "CHANGE_UNDER_WAY", HTTP: 409,
		RetryAfter: 200 * time.Millisecond, sentinel: cluster.ErrChanging,
	},
	{
		Name: "change of members refused", Code: codes.FailedPrecondition, Reason: "CHANGE_REFUSED", HTTP: 409,
		sentinel: cluster.ErrChangeRefused,
	},
	{
		Name: "electing", Code: codes.Unavailable, Reason: "NO_LEADER", HTTP: 503, RetryAfter: 200 * time.Millisecond,
		sentinel: cluster.ErrNoLeader,
	},
	{
		Name: "no majority reachable", Code: codes.Unavailable, Reason: "NO_QUORUM", HTTP: 503, RetryAfter: time.Second,
		sentinel: cluster.ErrNoQuorum,
	},
	{
		Name: "node overloaded", Code: codes.ResourceExhausted, Reason: "OVERLOADED", HTTP: 429,
		RetryAfter: 100 * time.Millisecond, sentinel: cluster.ErrOverloaded,
	},
	{
		Name: "disk low", Code: codes.ResourceExhausted, Reason: "DISK_LOW", HTTP: 503,
		sentinel: cluster.ErrDiskLow,
	},
	{
		Name: "node closing", Code: codes.Unavailable, Reason: "SHUTTING_DOWN", HTTP: 503, RetryAfter: time.Second,
		sentinel: cluster.ErrClosed,
	},
	{
		Name: "events no longer kept", Code: codes.OutOfRange, Reason: "COMPACTED", HTTP: 410,
		sentinel: events.ErrCompacted,
	},
	{
		Name: "no credential", Code: codes.Unauthenticated, Reason: "UNAUTHENTICATED", HTTP: 401,
		sentinel: errUnauthenticated,
	},
	{
		Name: "no right", Code: codes.PermissionDenied, Reason: "NO_RIGHT", HTTP: 403,
		sentinel: errNoRight,
	},
	{
		Name: "message too large", Code: codes.ResourceExhausted, Reason: "MESSAGE_TOO_LARGE", HTTP: 413,
		sentinel: ErrTooLarge,
	},
	{
		Name: "foreign host", Code: codes.PermissionDenied, Reason: "HOST_NOT_ALLOWED", HTTP: 421,
		sentinel: ErrHost,
	},
	{
		Name: "foreign origin", Code: codes.PermissionDenied, Reason: "ORIGIN_NOT_ALLOWED", HTTP: 403,
		sentinel: ErrOrigin,
	},
	{
		Name: "content type", Code: codes.InvalidArgument, Reason: "CONTENT_TYPE", HTTP: 415,
		sentinel: ErrContentType,
	},
	{
		Name: "unknown path", Code: codes.Unimplemented, Reason: "UNKNOWN_PATH", HTTP: 404,
		sentinel: ErrPath,
	},
	{
		Name: "method not allowed", Code: codes.Unimplemented, Reason: "METHOD_NOT_ALLOWED", HTTP: 405,
		sentinel: ErrMethod,
	},
	{
		Name: "unknown service, asked of the health service", Code: codes.NotFound, Reason: "SERVICE_NOT_FOUND", HTTP: 404,
		sentinel: errNoService,
	},
	{Name: "unknown call", Code: codes.Unimplemented, HTTP: 501},
	{
		Name: "bug", Code: codes.Internal, Reason: "INTERNAL", HTTP: 500, MayHaveHappened: true,
		sentinel: errBug,
	},
	// What follows is made by the transport, or by a program that is newer.
	{Name: "connection lost", Code: codes.Unavailable, HTTP: 503, MayHaveHappened: true},
	{Name: "anything else", Code: codes.Unknown, HTTP: 500, MayHaveHappened: true},
}

// Causes returns the rows of the error table.
func Causes() []Cause { return append([]Cause(nil), causes...) }

// Field is one field of a request that can't be used.
type Field struct {
	// Name is its path: "charges[0].amount".
	Name string
	// Problem has the value and the bound.
	Problem string
}

// Error is a call that was not answered, with its row of the table. Its methods
// make it a gRPC status error and let errors.Is find the cause.
type Error struct {
	Cause Cause
	// Message is one line for people.
	Message string
	// Fields are those at fault, where the cause is a bad field.
	Fields []Field
	// Correlation ties an INTERNAL error to the node's log. It is drawn at random.
	Correlation string
}

// Error is the message.
func (e *Error) Error() string { return e.Message }

// Is matches the project's own error that the cause stands for.
func (e *Error) Is(target error) bool {
	return e.Cause.sentinel != nil && target == e.Cause.sentinel
}

// GRPCStatus makes gRPC answer with the cause's code and details.
func (e *Error) GRPCStatus() *status.Status {
	st := status.New(e.Cause.Code, e.Message)
	var details []protoadapt.MessageV1
	if e.Cause.Reason != "" {
		info := &errdetails.ErrorInfo{Reason: e.Cause.Reason, Domain: Domain}
		if e.Correlation != "" {
			info.Metadata = map[string]string{"correlation_id": e.Correlation}
		}
		details = append(details, info)
	}
	if len(e.Fields) > 0 {
		bad := &errdetails.BadRequest{}
		for _, f := range e.Fields {
			bad.FieldViolations = append(bad.FieldViolations, &errdetails.BadRequest_FieldViolation{
				Field: f.Name, Description: f.Problem, Reason: e.Cause.Reason,
			})
		}
		details = append(details, bad)
	}
	if e.Cause.RetryAfter > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(e.Cause.RetryAfter)})
	}
	// Only a status that is OK can't have details.
	if with, err := st.WithDetails(details...); err == nil {
		return with
	}
	return st
}

// ErrorOf puts any error into the table. What is in no row is a bug: its text is
// for the log, not for the caller. It returns nil for nil.
func ErrorOf(err error) *Error {
	if err == nil {
		return nil
	}
	var already *Error
	if errors.As(err, &already) {
		return already
	}
	if fields := fieldsOf(err); len(fields) > 0 {
		return badFields(fields)
	}
	var refused *fsm.Refused
	if errors.As(err, &refused) {
		return refusedError(refused)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w: %w", cluster.ErrDeadline, err)
	}
	var lost *events.LostError
	if errors.As(err, &lost) {
		err = fmt.Errorf("%w: %w", events.ErrCompacted, err)
	}
	for _, row := range causes {
		if row.sentinel != nil && errors.Is(err, row.sentinel) {
			return &Error{Cause: row, Message: err.Error()}
		}
	}
	if st, ok := status.FromError(err); ok {
		return FromStatus(st)
	}
	return &Error{Cause: causeOf(errBug), Message: errBug.Error()}
}

func causeOf(sentinel error) Cause {
	for _, row := range causes {
		if row.sentinel != nil && errors.Is(sentinel, row.sentinel) {
			return row
		}
	}
	return causes[len(causes)-1]
}

func refusedError(refused *fsm.Refused) *Error {
	for _, row := range causes {
		if row.refusal == 0 || row.refusal != refused.GetCause() {
			continue
		}
		if row.refusal == logv1.Refusal_CAUSE_BAD_FIELD {
			return badFields([]Field{{refused.GetField(), refused.GetMessage()}})
		}
		return &Error{Cause: row, Message: refused.GetMessage()}
	}
	return &Error{Cause: causeOf(errBug), Message: errBug.Error()}
}

// fieldsOf returns what a limits file or a limit has wrong.
func fieldsOf(err error) (fields []Field) {
	var resolved limitsfile.FieldErrors
	if errors.As(err, &resolved) {
		for _, f := range resolved {
			fields = append(fields, Field{f.Field, f.Problem})
		}
	}
	var source limitsfile.SourceErrors
	if errors.As(err, &source) {
		for _, f := range source {
			fields = append(fields, Field{f.Field, fmt.Sprintf("line %d, column %d: %s", f.Line, f.Column, f.Problem)})
		}
	}
	return fields
}

// fieldsMax bounds how many fields one error names.
const fieldsMax = 20

func badFields(fields []Field) *Error {
	fields = fields[:min(len(fields), fieldsMax)]
	lines := make([]string, len(fields))
	for i, f := range fields {
		lines[i] = strings.TrimPrefix(f.Name+": "+f.Problem, ": ")
	}
	return &Error{Cause: causeOf(errBadField), Message: strings.Join(lines, "; "), Fields: fields}
}

// FromStatus is the inverse: the row that a status of this protocol came from,
// whoever made it. It is total, and nil for OK.
func FromStatus(st *status.Status) *Error {
	if st.Code() == codes.OK {
		return nil
	}
	e := &Error{Message: st.Message()}
	reason := ""
	for _, detail := range st.Details() {
		switch detail := detail.(type) {
		case *errdetails.ErrorInfo:
			if detail.GetDomain() == Domain {
				reason = detail.GetReason()
				e.Correlation = detail.GetMetadata()["correlation_id"]
			}
		case *errdetails.BadRequest:
			for _, f := range detail.GetFieldViolations() {
				e.Fields = append(e.Fields, Field{f.GetField(), f.GetDescription()})
			}
		}
	}
	for _, row := range causes {
		if row.Code == st.Code() && row.Reason == reason {
			e.Cause = row
			return e
		}
	}
	e.Cause = causes[len(causes)-1]
	e.Cause.Code = st.Code()
	return e
}
