package server_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server"
	"github.com/quorlease/quorlease/cluster"
	"github.com/quorlease/quorlease/cluster/events"
)

func TestLimitsLifeCycle(t *testing.T) {
	t.Parallel()
	_, _, address := start(t, nil)
	conn := dial(t, address)
	limits := quorleasev1.NewLimitsClient(conn)
	configure(t, conn, "a", nil)

	listed, err := limits.List(patient(t), &quorleasev1.LimitsListRequest{Name: "a"})
	if err != nil || listed.GetRevision() != 1 || len(listed.GetLimits()) != 1 {
		t.Fatalf("list: %v, %v", listed, err)
	}
	t.Run("A12_the_same_again_changes_nothing", func(t *testing.T) {
		again, err := limits.Apply(patient(t), &quorleasev1.LimitsApplyRequest{Limits: listed.GetLimits()})
		if err != nil || again.GetRevision() != 1 || len(again.GetChanges()) != 0 {
			t.Errorf("got %v, %v", again, err)
		}
	})
	burst := int64(20)
	listed.GetLimits()[0].GetDimensions()[0].Burst = &burst
	planned, err := limits.Apply(patient(t), &quorleasev1.LimitsApplyRequest{Limits: listed.GetLimits(), DryRun: true})
	if err != nil || planned.GetRevision() != 2 ||
		planned.GetChanges()[0].GetLimitBefore().GetDimensions()[0].GetBurst() != 10 ||
		planned.GetChanges()[0].GetLimitAfter().GetDimensions()[0].GetBurst() != 20 {
		t.Errorf("planned: %v, %v", planned, err)
	}
	stale := uint64(7)
	_, err = limits.Apply(patient(t),
		&quorleasev1.LimitsApplyRequest{Limits: listed.GetLimits(), ExpectedRevision: &stale})
	if e := server.ErrorOf(err); e.Cause.Reason != "REVISION_CHANGED" || e.Cause.Code != codes.Aborted {
		t.Errorf("stale revision: %v", err)
	}
	_, err = limits.Delete(patient(t), &quorleasev1.LimitsDeleteRequest{Name: "b"})
	if status.Code(err) != codes.NotFound {
		t.Errorf("delete of nothing: %v", err)
	}
	_, err = limits.Apply(patient(t), &quorleasev1.LimitsApplyRequest{
		RetryBudgets: []*quorleasev1.RetryBudget{{Name: "budget", Client: "*"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"budget", "a"} {
		if _, err := limits.Delete(patient(t), &quorleasev1.LimitsDeleteRequest{Name: name}); err != nil {
			t.Errorf("delete %s: %v", name, err)
		}
	}
	history, err := limits.History(patient(t), &quorleasev1.LimitsHistoryRequest{Limit: 2})
	if err != nil || len(history.GetRevisions()) != 2 || history.GetRevisions()[0].GetRevision() != 4 ||
		history.GetRevisions()[0].GetAuthor() != "operator" ||
		history.GetRevisions()[0].GetChanges()[0].GetLimitAfter() != nil {
		t.Errorf("history: %v, %v", history, err)
	}
	for name, want := range map[string]string{"a": "LIMIT_NOT_FOUND", "A": "BAD_FIELD"} {
		_, err := limits.List(patient(t), &quorleasev1.LimitsListRequest{Name: name})
		if server.ErrorOf(err).Cause.Reason != want {
			t.Errorf("list %s: %v", name, err)
		}
	}
}

// G2: the bound by which spending can trail debiting is shown, in time and in
// tokens.
func TestG2SlackIsShown(t *testing.T) {
	t.Parallel()
	_, _, address := start(t, nil)
	conn := dial(t, address)
	configure(t, conn, "a", nil)
	in, err := quorleasev1.NewLimitsClient(conn).Inspect(patient(t), &quorleasev1.LimitsInspectRequest{Limit: "a"})
	if err != nil {
		t.Fatal(err)
	}
	// A lease of 5 s, and 10 tokens that can come back at 10 a minute.
	b := in.GetBuckets()[0]
	if b.GetSlack().AsDuration() != 65*time.Second || b.GetSlackTokens() != 11 {
		t.Errorf("slack %v, %d tokens; want 1m5s, 11", b.GetSlack().AsDuration(), b.GetSlackTokens())
	}
	if b.GetLevel() != 10 || b.GetBurst() != 10 || in.GetSeen() {
		t.Errorf("got %v", in)
	}
}

// A10: what was charged can be seen.
func TestA10InspectShowsWhatWasCharged(t *testing.T) {
	t.Parallel()
	_, _, address := start(t, nil)
	conn := dial(t, address)
	large := int64(1_000_000_000_000)
	configure(t, conn, "large", func(l *quorleasev1.Limit) {
		l.GetDimensions()[0].GetRate().Amount = 1_000_000_000
		l.GetDimensions()[0].Burst = &large
	})
	answer, err := quorleasev1.NewAdmissionClient(conn).Acquire(patient(t),
		&quorleasev1.AcquireRequest{Charges: charge("large", large-1)})
	if err != nil || answer.GetDecision() != quorleasev1.Decision_GRANTED {
		t.Fatalf("got %v, %v", answer, err)
	}
	limits := quorleasev1.NewLimitsClient(conn)
	in, err := limits.Inspect(patient(t), &quorleasev1.LimitsInspectRequest{Limit: "large"})
	if err != nil || !in.GetSeen() || in.GetBuckets()[0].GetLevel() != 1 {
		t.Errorf("inspect: %v, %v", in, err)
	}
	adjusted, err := limits.Adjust(patient(t), &quorleasev1.LimitsAdjustRequest{
		Limit: "large", Dimension: "requests", Change: &quorleasev1.LimitsAdjustRequest_Add{Add: 41}, Reason: "test",
	})
	if err != nil || adjusted.GetBefore().GetTokens() != 1 || adjusted.GetAfter().GetTokens() != 42 {
		t.Errorf("adjust: %v, %v", adjusted, err)
	}
}

func TestEventsAreStreamed(t *testing.T) {
	t.Parallel()
	node, s, address := start(t, nil)
	client := quorleasev1.NewEventsClient(dial(t, address))
	node.Ring.Publish(events.Event{Index: 7, Kind: events.LimitChanged, Severity: events.Warning, Limit: "a", Text: "x"})
	from := uint64(0)
	past, err := client.Watch(patient(t), &quorleasev1.EventsWatchRequest{FromIndex: &from})
	if err != nil {
		t.Fatal(err)
	}
	got, err := past.Recv()
	if e := got.GetEvent(); err != nil || e.GetIndex() != 7 || e.GetKind() != "LimitChanged" ||
		e.GetSeverity() != quorleasev1.Severity_WARNING || e.GetLimit() != "a" {
		t.Errorf("past: %v, %v", got, err)
	}
	if _, err := past.Recv(); err == nil {
		t.Error("the past does not end")
	}
	follow, err := client.Watch(patient(t), &quorleasev1.EventsWatchRequest{FromIndex: &from, Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	for want := range uint64(3) {
		if got, err := follow.Recv(); err != nil || got.GetEvent().GetIndex() != 7+want {
			t.Fatalf("follow: %v, %v", got, err)
		}
		node.Ring.Publish(events.Event{Index: 8 + want, Kind: events.LeaderChanged})
	}
	_, _ = follow.Recv()
	// Whoever follows is told that entries came as a snapshot, and can begin again.
	node.Ring.Restored(1000)
	if _, err := follow.Recv(); server.ErrorOf(err).Cause.Reason != "COMPACTED" {
		t.Errorf("following over a snapshot: %v", err)
	}
	if follow, err = client.Watch(patient(t), &quorleasev1.EventsWatchRequest{Follow: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := follow.Header(); err != nil {
		t.Errorf("following anew: %v", err)
	}
	gone := uint64(500)
	compacted, err := client.Watch(patient(t), &quorleasev1.EventsWatchRequest{FromIndex: &gone})
	if err == nil {
		_, err = compacted.Recv()
	}
	if e := server.ErrorOf(err); e.Cause.Reason != "COMPACTED" || e.Cause.Code != codes.OutOfRange {
		t.Errorf("compacted: %v", err)
	}
	s.Drain()
	if _, err := follow.Recv(); server.ErrorOf(err).Cause.Reason != "SHUTTING_DOWN" {
		t.Errorf("draining: %v", err)
	}
}

func TestHealthAndReflection(t *testing.T) {
	t.Parallel()
	node, _, address := start(t, nil)
	conn := dial(t, address)
	health := grpc_health_v1.NewHealthClient(conn)
	watch, err := health.Watch(patient(t), &grpc_health_v1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []grpc_health_v1.HealthCheckResponse_ServingStatus{
		grpc_health_v1.HealthCheckResponse_SERVING, grpc_health_v1.HealthCheckResponse_NOT_SERVING,
	} {
		if got, err := watch.Recv(); err != nil || got.GetStatus() != want {
			t.Errorf("watch: %v, %v, want %v", got, err, want)
		}
		got, err := health.Check(patient(t), &grpc_health_v1.HealthCheckRequest{Service: "quorlease.v1.Admission"})
		if err != nil || got.GetStatus() != want {
			t.Errorf("check: %v, %v, want %v", got, err, want)
		}
		node.SetStatus(cluster.Status{})
	}
	_, err = health.Check(patient(t), &grpc_health_v1.HealthCheckRequest{Service: "x"})
	if status.Code(err) != codes.NotFound {
		t.Errorf("unknown service: %v", err)
	}
	list, err := health.List(patient(t), &grpc_health_v1.HealthListRequest{})
	if err != nil || len(list.GetStatuses()) != 11 {
		t.Errorf("list: %v, %v", list, err)
	}
	stream, err := reflectionpb.NewServerReflectionClient(conn).ServerReflectionInfo(patient(t))
	if err != nil {
		t.Fatal(err)
	}
	err = stream.Send(&reflectionpb.ServerReflectionRequest{
		MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{},
	})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := stream.Recv()
	if err != nil || !strings.Contains(answer.String(), "quorlease.v1.Limits") {
		t.Errorf("reflection: %v, %v", answer, err)
	}
}
