package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorlease/quorlease/api/limitsfile"
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server"
	"github.com/quorlease/quorlease/cluster"
	"github.com/quorlease/quorlease/cluster/events"
	"github.com/quorlease/quorlease/fsm"
)

// sentinels are the errors that each package can end an operation with.
var sentinels = map[error]string{
	cluster.ErrNoLeader: "NO_LEADER", cluster.ErrNoQuorum: "NO_QUORUM",
	cluster.ErrOutcomeUnknown: "OUTCOME_UNKNOWN", cluster.ErrOverloaded: "OVERLOADED",
	cluster.ErrDiskLow: "DISK_LOW", cluster.ErrClosed: "SHUTTING_DOWN", events.ErrCompacted: "COMPACTED",
	server.ErrHost: "HOST_NOT_ALLOWED", server.ErrOrigin: "ORIGIN_NOT_ALLOWED",
	server.ErrContentType: "CONTENT_TYPE", server.ErrPath: "UNKNOWN_PATH", server.ErrMethod: "METHOD_NOT_ALLOWED",
	server.ErrTooLarge:       "MESSAGE_TOO_LARGE",
	cluster.ErrUnknownMember: "NODE_NOT_FOUND", cluster.ErrNotReady: "NODE_NOT_READY",
	cluster.ErrChanging: "CHANGE_UNDER_WAY", cluster.ErrChangeRefused: "CHANGE_REFUSED",
}

// Whatever an operation ends with has its row, also when it is wrapped, and the
// caller sees which.
func TestErrorTableIsTotal(t *testing.T) {
	t.Parallel()
	for sentinel, reason := range sentinels {
		e := server.ErrorOf(fmt.Errorf("while doing: %w", sentinel))
		if e.Cause.Reason != reason {
			t.Errorf("%v: reason %q, want %q", sentinel, e.Cause.Reason, reason)
		}
		// Whoever reads the status finds the same error again.
		if back := server.FromStatus(e.GRPCStatus()); !errors.Is(back, sentinel) {
			t.Errorf("%v: comes back as %q", sentinel, back.Cause.Name)
		}
	}
	for number, name := range logv1.Refusal_Cause_name {
		cause := logv1.Refusal_Cause(number)
		e := server.ErrorOf(&fsm.Refused{Refusal: &logv1.Refusal{Cause: cause, Message: "m", Field: "f"}})
		want := strings.TrimPrefix(name, "CAUSE_")
		if cause == logv1.Refusal_CAUSE_UNSPECIFIED {
			want = "INTERNAL"
		}
		if e.Cause.Reason != want {
			t.Errorf("%v: reason %q, want %q", cause, e.Cause.Reason, want)
		}
	}
	for _, test := range []struct {
		err  error
		want codes.Code
	}{
		{context.DeadlineExceeded, codes.DeadlineExceeded},
		{context.Canceled, codes.Canceled},
		{cluster.ErrDeadline, codes.DeadlineExceeded},
		{fmt.Errorf("%w: %w", cluster.ErrDeadline, cluster.ErrOutcomeUnknown), codes.DeadlineExceeded},
		{errors.New("something else"), codes.Internal},
		{&events.LostError{Lost: 3}, codes.OutOfRange},
		{limitsfile.FieldErrors{{Field: "a", Problem: "b"}}, codes.InvalidArgument},
		{limitsfile.SourceErrors{{Field: "a", Problem: "b"}}, codes.InvalidArgument},
	} {
		if got := server.ErrorOf(test.err).Cause.Code; got != test.want {
			t.Errorf("%v: code %v, want %v", test.err, got, test.want)
		}
	}
	if server.ErrorOf(nil) != nil || server.FromStatus(status.New(codes.OK, "")) != nil {
		t.Error("no error became one")
	}
}

// Whatever else is known of an operation that may have happened, it may have
// happened: one that was sent again and then found no leader, for one.
func TestG4AmbiguousIsNeverAnsweredAsCertain(t *testing.T) {
	t.Parallel()
	for sentinel := range sentinels {
		err := fmt.Errorf("%w: %w", cluster.ErrOutcomeUnknown, sentinel)
		if e := server.ErrorOf(err); !e.Cause.MayHaveHappened {
			t.Errorf("%v: told that it did not happen, by the row %q", err, e.Cause.Name)
		}
	}
}

// Both directions lose nothing, for every row and for every code.
func TestErrorTableRoundTrips(t *testing.T) {
	t.Parallel()
	type key struct {
		code   codes.Code
		reason string
	}
	seen := map[key]string{}
	for _, cause := range server.Causes() {
		e := &server.Error{Cause: cause, Message: "why", Fields: []server.Field{{Name: "f", Problem: "p"}}}
		back := server.FromStatus(e.GRPCStatus())
		if back.Cause.Name != cause.Name {
			t.Errorf("%q comes back as %q", cause.Name, back.Cause.Name)
		}
		if back.Message != "why" || len(back.Fields) != 1 || back.Fields[0] != e.Fields[0] {
			t.Errorf("%q: %+v", cause.Name, back)
		}
		k := key{cause.Code, cause.Reason}
		if other := seen[k]; other != "" {
			t.Errorf("%q and %q look alike", cause.Name, other)
		}
		seen[k] = cause.Name
		if cause.HTTP != 499 && http.StatusText(cause.HTTP) == "" || cause.HTTP < 400 {
			t.Errorf("%q: HTTP %d", cause.Name, cause.HTTP)
		}
	}
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		back := server.FromStatus(status.New(code, "bare"))
		if back.Cause.Code != code {
			t.Errorf("%v comes back as %v", code, back.Cause.Code)
		}
		// A status without our reason comes from somebody else: it proves nothing.
		if !back.Cause.MayHaveHappened && code != codes.Unimplemented {
			t.Errorf("bare %v: taken for certain", code)
		}
	}
}

// Who reads errors.md finds every cause with its code, reason and HTTP status,
// and every reason of a denial.
func TestErrorsAreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/reference/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, line := range strings.Split(string(page), "\n") {
		if strings.HasPrefix(line, "|") {
			rows = append(rows, line)
		}
	}
	for _, cause := range server.Causes() {
		unknown := "| no |"
		if cause.MayHaveHappened {
			unknown = "| unknown |"
		}
		want := []string{"| " + cause.Name + " |", "`" + cause.CodeName() + "`", fmt.Sprintf("| %d |", cause.HTTP), unknown}
		if cause.Reason != "" {
			want = append(want, "`"+cause.Reason+"`")
		}
		if cause.RetryAfter > 0 {
			want = append(want, fmt.Sprintf("%v", cause.RetryAfter))
		}
		if !hasRow(rows, want) {
			t.Errorf("errors.md has no row with %q", want)
		}
	}
	for number, name := range quorleasev1.Reason_name {
		if number != 0 && !hasRow(rows, []string{"`" + name + "`"}) {
			t.Errorf("errors.md does not explain the reason %s", name)
		}
	}
}

func hasRow(rows, parts []string) bool {
	for _, row := range rows {
		found := true
		for _, part := range parts {
			found = found && strings.Contains(row, part)
		}
		if found {
			return true
		}
	}
	return false
}
