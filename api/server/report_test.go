package server_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/testing/protocmp"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server"
	"github.com/quorlease/quorlease/api/server/servertest"
	"github.com/quorlease/quorlease/cluster"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/state"
)

func reportOf(limit string, tokens int64) *quorleasev1.ReportRequest {
	return &quorleasev1.ReportRequest{
		Client: "c", SessionId: leaseID,
		Admitted: []*quorleasev1.Admitted{{Limit: limit, Dimension: "requests", Tokens: tokens}},
	}
}

// TestT35ReportsAreBookedOnce: the same report again, through whichever door,
// books nothing, and inspecting the limit shows what was booked.
func TestT35ReportsAreBookedOnce(t *testing.T) {
	t.Parallel()
	t.Run("T35", func(t *testing.T) {
		t.Parallel()
		node, _, address := start(t, nil)
		conn := dial(t, address)
		configure(t, conn, "a", nil)
		admission := quorleasev1.NewAdmissionClient(conn)
		node.Advance(time.Second)
		for _, want := range []*quorleasev1.ReportResponse{
			{Booked: []*quorleasev1.Booked{{Tokens: 14, Debt: 4}}},
			{Booked: []*quorleasev1.Booked{{}}, RepeatedRequest: true},
		} {
			got, err := admission.Report(patient(t), reportOf("a", 14))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		}
		// One more on top, far beyond the debt; what is gone is no repetition.
		more, err := admission.Report(patient(t), reportOf("a", 34))
		if b := more.GetBooked(); err != nil || b[0].GetTokens() != 20 || b[0].GetDebt() != 6 || b[0].GetWrittenOff() != 14 {
			t.Errorf("%v, %v", more, err)
		}
		gone, err := admission.Report(patient(t), reportOf("absent", 3))
		if err != nil || !gone.GetBooked()[0].GetGone() || gone.GetRepeatedRequest() {
			t.Errorf("%v, %v, want gone", gone, err)
		}
		inspected, err := quorleasev1.NewLimitsClient(conn).Inspect(patient(t), &quorleasev1.LimitsInspectRequest{Limit: "a"})
		if err != nil {
			t.Fatal(err)
		}
		want := []*quorleasev1.ReportState{{
			Client: "c", SessionId: leaseID, Dimension: "requests", Tokens: 34, At: int64(time.Second),
		}}
		if diff := cmp.Diff(want, inspected.GetReports(), protocmp.Transform()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if b := inspected.GetBuckets()[0]; b.GetLevel() != 0 || b.GetDebt() != 10 {
			t.Errorf("level %d, debt %d, want 0 and 10", b.GetLevel(), b.GetDebt())
		}
	})
}

// A client may report, and what it reports is its credential's.
func TestClientsReportForThemselves(t *testing.T) {
	t.Parallel()
	node, _, address := start(t, func(c *server.Config) {
		c.Identify = func(*peer.Peer) (server.Identity, error) {
			return server.Identity{Name: "gateway-1", Role: server.Client}, nil
		}
	})
	if _, err := quorleasev1.NewAdmissionClient(dial(t, address)).Report(patient(t), reportOf("a", 1)); err != nil {
		t.Fatal(err)
	}
	if got := node.Last().GetReportAdmitted(); got.GetOwner() != "gateway-1" || got.GetClient() != "c" {
		t.Errorf("%v, want one of gateway-1", got)
	}
}

// A report that there is no room for is an error with its own reason.
func TestReportsBeyondTheBound(t *testing.T) {
	t.Parallel()
	node, _, address := start(t, nil)
	node.Fail(&fsm.Refused{Refusal: &logv1.Refusal{Cause: logv1.Refusal_CAUSE_REPORT_LIMIT, Message: "full"}})
	_, err := quorleasev1.NewAdmissionClient(dial(t, address)).Report(patient(t), reportOf("a", state.MaxReports))
	if e := server.ErrorOf(err); e.Cause.Reason != "REPORT_LIMIT" || e.Cause.MayHaveHappened {
		t.Errorf("%v, want REPORT_LIMIT", err)
	}
}

// unbooking fails what books admitted work, and nothing else.
type unbooking struct{ *servertest.Node }

func (n *unbooking) Do(ctx context.Context, op *logv1.Operation, attempt uint32) (*logv1.Result, error) {
	if op.GetReportAdmitted() != nil {
		return nil, cluster.ErrNoLeader
	}
	return n.Node.Do(ctx, op, attempt)
}

// Half a report that was heard is not one that did not happen: hearing twice that a
// provider is overloaded is hearing something else.
func TestG4HalfAReportMayHaveHappened(t *testing.T) {
	t.Parallel()
	_, _, address := start(t, func(c *server.Config) {
		c.Node = &unbooking{c.Node.(*servertest.Node)}
	})
	conn := dial(t, address)
	configure(t, conn, "a", nil)
	admission := quorleasev1.NewAdmissionClient(conn)
	_, err := admission.Report(patient(t), reportOf("a", 14))
	if e := server.ErrorOf(err); e.Cause.Reason != "NO_LEADER" {
		t.Errorf("nothing was heard: %v", err)
	}
	both := reportOf("a", 14)
	both.Feedback = []*quorleasev1.Feedback{{Kind: quorleasev1.Feedback_OVERLOADED, Limit: "a"}}
	_, err = admission.Report(patient(t), both)
	if e := server.ErrorOf(err); e.Cause.Reason != "OUTCOME_UNKNOWN" {
		t.Errorf("the feedback was heard: %v", err)
	}
}
