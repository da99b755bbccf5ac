package server_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server"
)

// TestPermitsAreCounted: a client that says what it did by its permits is in the
// list, with its budget spent.
func TestPermitsAreCounted(t *testing.T) {
	t.Parallel()
	t.Run("S1-31", func(t *testing.T) {
		t.Parallel()
		node, _, address := start(t, nil)
		conn := dial(t, address)
		node.Apply(&logv1.Operation{Kind: &logv1.Operation_ApplyLimits{ApplyLimits: &logv1.ApplyLimits{
			RetryBudgets: []*logv1.RetryBudget{{
				Name: "default", Client: "*", MaxRetries: 3, MaxFraction: 2000, MinRequests: 50,
				Window: int64(5 * time.Minute), RetryAfter: int64(time.Minute), Mode: logv1.Mode_MODE_WARN,
			}},
		}}})
		for range 2 {
			_, err := quorleasev1.NewAdmissionClient(conn).Report(patient(t), &quorleasev1.ReportRequest{
				Client: "batch", Attempts: &quorleasev1.Attempts{Total: 100, Retries: 46, Throttled: 40, Error: "429", Errors: 40},
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		node.Apply(&logv1.Operation{Kind: &logv1.Operation_ReportRetries{ReportRetries: &logv1.ReportRetries{
			Node: "n2", Slices: []*logv1.ClientSlice{{Client: "batch", Denied: 40, Early: 2}, {Client: "calm", Total: 2}},
		}}})
		got, err := quorleasev1.NewClientsClient(conn).List(patient(t), &quorleasev1.ClientsListRequest{})
		if err != nil {
			t.Fatal(err)
		}
		want := &quorleasev1.ClientsListResponse{Total: 2, Clients: []*quorleasev1.ClientStatus{
			{
				Client: "batch", Requests: 200, Retries: 92, FractionPpm: 460_000, RetryBudget: "default", OverBudget: true,
				Throttled: 80, Denied: 40, Early: 2, HonoursWaits: proto.Bool(true), Error: "429",
				FreesIn: durationpb.New(5 * time.Minute), Mode: quorleasev1.Mode_WARN, RetriesAllowed: 92,
			},
			{
				Client: "calm", Requests: 2, RetriesLeft: 49, RetriesAllowed: 49, RetryBudget: "default",
				Mode: quorleasev1.Mode_WARN,
			},
		}}
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
	t.Run("S1-13", func(t *testing.T) {
		t.Parallel()
		node, _, address := start(t, nil)
		conn := dial(t, address)
		for _, c := range []struct {
			client        string
			denied, early int64
			want          *bool
		}{
			{"too-seldom", 19, 19, nil},
			{"one-in-twenty", 20, 1, proto.Bool(true)},
			{"two-in-twenty", 20, 2, proto.Bool(false)},
		} {
			node.Apply(&logv1.Operation{Kind: &logv1.Operation_ReportRetries{ReportRetries: &logv1.ReportRetries{
				Node: "n2", Slices: []*logv1.ClientSlice{{Client: c.client, Total: 1, Denied: c.denied, Early: c.early}},
			}}})
			list, err := quorleasev1.NewClientsClient(conn).List(patient(t), &quorleasev1.ClientsListRequest{})
			if err != nil {
				t.Fatal(err)
			}
			for _, got := range list.GetClients() {
				if got.GetClient() == c.client && (got.HonoursWaits == nil != (c.want == nil) ||
					got.GetHonoursWaits() != (c.want != nil && *c.want)) {
					t.Errorf("%v", got)
				}
			}
		}
	})
}

// TestAttemptsThatCantBe: each field has its bounds, and nothing is counted.
func TestAttemptsThatCantBe(t *testing.T) {
	t.Parallel()
	_, _, address := start(t, nil)
	conn := dial(t, address)
	for field, a := range map[string]*quorleasev1.Attempts{
		"attempts.total":     {Total: -1},
		"attempts.retries":   {Total: 1, Retries: 2},
		"attempts.throttled": {Total: 1, Throttled: 1<<40 + 1},
		"attempts.errors":    {Total: 1, Errors: -1},
		"attempts.error":     {Total: 1, Error: strings.Repeat("x", 65)},
	} {
		r := &quorleasev1.ReportRequest{Client: "c", Attempts: a}
		_, err := quorleasev1.NewAdmissionClient(conn).Report(patient(t), r)
		if e := server.ErrorOf(err); len(e.Fields) != 1 || e.Fields[0].Name != field {
			t.Errorf("%v, want %s", err, field)
		}
	}
	list, err := quorleasev1.NewClientsClient(conn).List(patient(t), &quorleasev1.ClientsListRequest{})
	if err != nil || len(list.GetClients()) != 0 {
		t.Errorf("%v, %v, want nobody", list, err)
	}
}
