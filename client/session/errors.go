package session

import (
	"errors"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

var (
	// ErrEnded: the session is over; what it wraps says why. The outcome of what was
	// under way is unknown, unless the error is also ErrUnsent.
	ErrEnded = errors.New("session ended")
	// ErrUnsent: nothing of the operation left this process. It did not happen.
	ErrUnsent = errors.New("not sent")
)

// domain is that of the reasons that a node gives.
const domain = "quorlease"

// itemError is the error that an item was answered with, if it was one. It has
// code and details of the one that the unary call would have failed with.
func itemError(answer *quorleasev1.ResponseItem) error {
	failure := answer.GetError()
	if failure == nil {
		return nil
	}
	return status.FromProto(failure).Err()
}

// Reason is the reason that a node gave for an error, such as "NO_LEADER". Empty
// where there is none: then the error is not a node's own, or its code says it
// all.
func Reason(err error) string {
	st, ok := status.FromError(err)
	if !ok || st == nil {
		return ""
	}
	for _, detail := range st.Details() {
		if about, ok := detail.(*errdetails.ErrorInfo); ok && about.GetDomain() == domain {
			return about.GetReason()
		}
	}
	return ""
}

// certain are the reasons after which nothing has happened, from the table in
// docs/reference/errors.md. A reason that is not known here is a newer node's:
// nothing can be said of it.
var certain = map[string]bool{
	"BAD_FIELD": true, "LIMIT_NOT_FOUND": true, "LEASE_NOT_FOUND": true, "LEASE_CONFLICT": true,
	"REVISION_CHANGED": true, "LEASE_LIMIT": true, "REPORT_LIMIT": true, "NO_LEADER": true, "NO_QUORUM": true,
	"OVERLOADED": true, "DISK_LOW": true, "SHUTTING_DOWN": true, "COMPACTED": true,
	"UNAUTHENTICATED": true, "NO_RIGHT": true, "MESSAGE_TOO_LARGE": true, "HOST_NOT_ALLOWED": true,
	"ORIGIN_NOT_ALLOWED": true, "CONTENT_TYPE": true, "UNKNOWN_PATH": true, "METHOD_NOT_ALLOWED": true,
	"SERVICE_NOT_FOUND": true, "NODE_NOT_FOUND": true, "NODE_NOT_READY": true, "CHANGE_UNDER_WAY": true,
	"CHANGE_REFUSED": true,
}

// MayHaveHappened says whether an operation that ended with err may have had its
// effect all the same, or may have it still. It is true of every error of which
// nobody knows better, and false of nil, which is an answer.
//
// An error with which a whole session ended is ErrEnded first: whatever the node
// said last, it is unknown what became of the items.
func MayHaveHappened(err error) bool {
	switch {
	case err == nil, errors.Is(err, ErrUnsent):
		return false
	case errors.Is(err, ErrEnded):
		return true
	}
	return !certain[Reason(err)]
}

// Blames says whether an error that a node, or the way to it, answered with is
// about the node rather than about what it was asked: another node may do better.
func Blames(err error) bool {
	switch Reason(err) {
	case "NO_LEADER", "NO_QUORUM", "OUTCOME_UNKNOWN", "OVERLOADED", "DISK_LOW", "SHUTTING_DOWN", "INTERNAL":
		return true
	case "":
		code := status.Code(err)
		return code == codes.Unavailable || code == codes.DeadlineExceeded ||
			code == codes.Unknown || code == codes.Internal
	}
	return false
}
