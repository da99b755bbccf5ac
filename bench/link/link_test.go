package link

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorlease/quorlease/client/session"
)

func TestReason(t *testing.T) {
	t.Parallel()
	electing, err := status.New(codes.Unavailable, "no leader").WithDetails(&errdetails.ErrorInfo{
		Reason: "NO_LEADER", Domain: "quorlease",
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		err       error
		want      string
		elsewhere bool
	}{
		{electing.Err(), "NO_LEADER", false},
		{status.Error(codes.Unavailable, "connection refused"), "UNAVAILABLE", true},
		{status.Error(codes.DeadlineExceeded, "late"), "DEADLINE_EXCEEDED", true},
		{context.DeadlineExceeded, "DEADLINE_EXCEEDED", true},
		{status.Error(codes.NotFound, "no such limit"), "NotFound", false},
		{fmt.Errorf("call: %w", session.ErrEnded), "SESSION_ENDED", true},
		{errors.New("no node answers"), "UNREACHABLE", false},
	} {
		if got := Reason(row.err); got != row.want || elsewhere(row.err) != row.elsewhere {
			t.Errorf("%v: %s, elsewhere %v; want %s, %v", row.err, got, elsewhere(row.err), row.want, row.elsewhere)
		}
	}
}
