package main

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

// failing is a node that answers every call with an error.
func failing(t *testing.T, err error) *fakeNode {
	t.Helper()
	return startFake(t, &fakeNode{fail: func(context.Context, proto.Message) error { return err }})
}

// TestG4RepeatsWithTheSameID loses the answer of the first node: the second one
// is asked for the very same thing.
func TestG4RepeatsWithTheSameID(t *testing.T) {
	t.Parallel()
	lost := refusal(t, codes.Unavailable, "OUTCOME_UNKNOWN", "leadership lost")
	for _, row := range [][]string{
		{"acquire", "llm/team-a", "--track"},
		{"settle", someLease, "requests=1"},
		{"release", someLease},
		{"renew", someLease},
	} {
		t.Run("G4_"+row[0], func(t *testing.T) {
			t.Parallel()
			first, second := failing(t, lost), startFake(t, fullFake())
			got := command(t, append([]string{"--endpoints", first.addr + "," + second.addr}, row...)...)
			if got.code != 0 {
				t.Fatalf("exit code %d, stderr %q", got.code, got.stderr)
			}
			a, b := first.asked(), second.asked()
			if len(a) != 1 || len(b) != 1 || !proto.Equal(a[0], b[0]) {
				t.Errorf("the nodes were asked %v and %v, want one question, the same", a, b)
			}
			if acquire, ok := a[0].(*quorleasev1.AcquireRequest); ok && len(acquire.GetLeaseId()) != 32 {
				t.Errorf("lease id %q, want 32 digits", acquire.GetLeaseId())
			}
		})
	}
}

// TestUnknownOutcome is what a person reads who can't know whether it happened.
func TestUnknownOutcome(t *testing.T) {
	t.Parallel()
	lost := refusal(t, codes.Unavailable, "OUTCOME_UNKNOWN", "leadership lost")
	for _, row := range []struct {
		args  []string
		stdin string
		want  string
	}{
		{[]string{"acquire", "demo"}, "", "asking again may charge twice; --track makes it repeatable"},
		{
			[]string{"acquire", "demo", "--track", "--lease-id", someLease},
			"",
			"the same again with --lease-id " + someLease + " tells, and charges once",
		},
		{[]string{"limits", "apply", "-f", "-"}, limitsYAML, "applying the same again does no harm"},
		{[]string{"adjust", "demo", "requests=+1", "--reason", "x"}, "", "it may have happened: "},
	} {
		node := failing(t, lost)
		args := append([]string{"--timeout", "300ms", "--endpoints", node.addr}, row.args...)
		got := commandWith(t, t.Context(), row.stdin, args...)
		if got.code != 1 || got.stdout != "" || !strings.Contains(got.stderr, "it may have happened") ||
			!strings.Contains(got.stderr, row.want) || strings.Count(got.stderr, "\n") != 1 {
			t.Errorf("%v: exit code %d, stdout %q, stderr %q, want 1, nothing, a line with %q",
				row.args, got.code, got.stdout, got.stderr, row.want)
		}
		if n := len(node.asked()); (n > 1) != slices.Contains(row.args, "--track") {
			t.Errorf("%v: asked %d times: only what is tracked may be asked again", row.args, n)
		}
	}
}

// TestErrorLines holds every reason of a node to one line with its exit code.
func TestErrorLines(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		code    codes.Code
		reason  string
		message string
		want    string
	}{
		{codes.NotFound, "LIMIT_NOT_FOUND", `"x": there is no such limit`, "limits get` lists those that exist"},
		{codes.NotFound, "LEASE_NOT_FOUND", "5eed: there is none", "lease 5eed: there is none; only tracked leases"},
		{codes.AlreadyExists, "LEASE_CONFLICT", "5eed: is another", "lease 5eed: is another; the lease stays as it is"},
		{
			codes.Aborted, "REVISION_CHANGED", "2: the revision is 3",
			"expected revision 2: the revision is 3; look with `quorlease limits get` and apply again",
		},
		{codes.ResourceExhausted, "DISK_LOW", "disk low", "free space on the node's disk"},
		{codes.InvalidArgument, "BAD_FIELD", "charges[0].key: \x1b[2J", `charges[0].key: \x1b[2J`},
		{codes.Unavailable, "NO_QUORUM", "2 of 3 are away", "no quorum, nothing was decided: "},
		{codes.Internal, "INTERNAL", "internal error", "internal error; it may have happened"},
		{codes.Unimplemented, "", "unknown service", "another version than this one"},
	} {
		node := failing(t, refusal(t, row.code, row.reason, row.message))
		got := command(t, "--endpoints", node.addr, "acquire", "x")
		if got.code != 1 || got.stdout != "" || !strings.HasPrefix(got.stderr, "quorlease: ") ||
			!strings.Contains(got.stderr, row.want) || strings.Count(got.stderr, "\n") != 1 {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q, want 1, nothing, a line with %q",
				row.reason, got.code, got.stdout, got.stderr, row.want)
		}
	}
}

// TestRequests checks what flags become.
func TestRequests(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		args  []string
		check func(proto.Message) bool
	}{
		{[]string{"acquire", "demo", "--client", "c", "--class", "live", "--attempt", "2"}, func(m proto.Message) bool {
			r, ok := m.(*quorleasev1.AcquireRequest)
			return ok && r.GetClient() == "c" && r.GetClass() == "live" && r.GetAttempt() == 2 && !r.GetTrack() &&
				r.GetLeaseId() == ""
		}},
		{
			[]string{"acquire", "--attr", "model=m", "--attr", "tenant=a=b", "tokens=5", "demo", "requests=2", "--wait", "2s"},
			func(m proto.Message) bool {
				r, ok := m.(*quorleasev1.AcquireRequest)
				return ok && r.GetAttributes()["model"] == "m" && r.GetAttributes()["tenant"] == "a=b" &&
					r.GetAmounts()["tokens"] == 5 && len(r.GetAmounts()) == 1 && len(r.GetCharges()) == 1 &&
					r.GetCharges()[0].GetAmount() == 2 && r.GetMaxWait().AsDuration() == 2*time.Second
			},
		},
		{[]string{"adjust", "llm/k", "clear-block", "--reason", "x"}, func(m proto.Message) bool {
			r, ok := m.(*quorleasev1.LimitsAdjustRequest)
			return ok && r.GetClearBlock() && r.GetDimension() == "" && r.GetKey() == "k"
		}},
		{[]string{"renew", someLease}, func(m proto.Message) bool {
			r, ok := m.(*quorleasev1.RenewRequest)
			return ok && r.GetTtl().AsDuration() == 30*time.Second && r.GetSequence() > uint64(time.Hour)
		}},
		{[]string{"events"}, func(m proto.Message) bool {
			r, ok := m.(*quorleasev1.EventsWatchRequest)
			return ok && r.FromIndex != nil && r.GetFromIndex() == 0 && !r.GetFollow()
		}},
		{[]string{"events", "--from", "7"}, func(m proto.Message) bool {
			r, ok := m.(*quorleasev1.EventsWatchRequest)
			return ok && r.GetFromIndex() == 7
		}},
		{[]string{"limits", "get", "demo", "--stale"}, func(m proto.Message) bool {
			r, ok := m.(*quorleasev1.LimitsListRequest)
			return ok && r.GetName() == "demo" && r.GetStale()
		}},
		{[]string{"limits", "delete", "demo", "--revision", "0"}, func(m proto.Message) bool {
			r, ok := m.(*quorleasev1.LimitsDeleteRequest)
			return ok && r.ExpectedRevision != nil && r.GetExpectedRevision() == 0
		}},
	} {
		node := startFake(t, fullFake())
		if got := command(t, append([]string{"--endpoints", node.addr}, row.args...)...); got.code != 0 {
			t.Errorf("%v: exit code %d, stderr %q", row.args, got.code, got.stderr)
		}
		if asked := node.asked(); len(asked) != 1 || !row.check(asked[0]) {
			t.Errorf("%v: asked %v", row.args, asked)
		}
	}
}

// TestAdjustReset resets every dimension, each by a change of its own.
func TestAdjustReset(t *testing.T) {
	t.Parallel()
	fake := fullFake()
	fake.inspect.Buckets = []*quorleasev1.BucketState{{Dimension: "requests"}, {Dimension: "tokens"}}
	node := startFake(t, fake)
	if got := command(t, "--endpoints", node.addr, "adjust", "llm/k", "reset", "--reason", "x"); got.code != 0 {
		t.Fatalf("exit code %d, stderr %q", got.code, got.stderr)
	}
	var dimensions []string
	for _, m := range node.asked()[1:] {
		if r, ok := m.(*quorleasev1.LimitsAdjustRequest); ok && r.GetReset_() && r.GetKey() == "k" {
			dimensions = append(dimensions, r.GetDimension())
		}
	}
	if got := strings.Join(dimensions, " "); got != "requests tokens" {
		t.Errorf("reset %q, want both dimensions", got)
	}
	fake.inspect.Buckets = nil
	got := command(t, "--endpoints", node.addr, "adjust", "free", "reset", "--reason", "x")
	if got.code != 1 || !strings.Contains(got.stderr, "free has no level") {
		t.Errorf("a limit without a bucket: exit code %d, stderr %q", got.code, got.stderr)
	}
}

// TestEventsFollow starts now, goes on, and ends well when it is interrupted.
func TestEventsFollow(t *testing.T) {
	t.Parallel()
	node := startFake(t, fullFake())
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-node.watching
		cancel()
	}()
	got := commandWith(t, ctx, "", "--endpoints", node.addr, "events", "--follow")
	if got.code != 0 || got.stderr != "" {
		t.Errorf("exit code %d, stderr %q, want an end without a word", got.code, got.stderr)
	}
	if r, ok := node.asked()[0].(*quorleasev1.EventsWatchRequest); !ok || r.FromIndex != nil || !r.GetFollow() {
		t.Errorf("asked %v, want a watch from now on", node.asked())
	}
	compacted := failing(t, refusal(t, codes.OutOfRange, "COMPACTED", "index 1 is no longer kept"))
	got = command(t, "--endpoints", compacted.addr, "events", "--from", "1")
	if got.code != 1 || !strings.Contains(got.stderr, "leave --from out to see what is kept") {
		t.Errorf("exit code %d, stderr %q", got.code, got.stderr)
	}
}
