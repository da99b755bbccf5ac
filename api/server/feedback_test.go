package server_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server"
	"github.com/quorlease/quorlease/fsm/fsmtest"
)

// TestFeedbackClosesABucket: what one gateway was told counts for all of them, by name
// and by attributes.
func TestFeedbackClosesABucket(t *testing.T) {
	t.Parallel()
	node, _, address := start(t, func(c *server.Config) {
		c.Identify = func(*peer.Peer) (server.Identity, error) {
			return server.Identity{Name: "gateway-1", Role: server.Client}, nil
		}
	})
	named := fsmtest.Keyed("named", fsmtest.Dimension(t, "requests", "10/1s", 10))
	fits := fsmtest.Keyed("fits", fsmtest.Dimension(t, "requests", "10/1s", 10))
	fits.Target, fits.Per = 7_500, []string{"deployment"}
	fits.Match = []*logv1.Match{{Attribute: "provider", Value: "azure"}}
	node.Apply(fsmtest.Apply(named, fits))
	admission := quorleasev1.NewAdmissionClient(dial(t, address))
	azure := map[string]string{"provider": "azure", "deployment": "gpt4"}
	throttled := func(f *quorleasev1.Feedback) *quorleasev1.Feedback {
		f.Kind, f.Wait, f.Reason = quorleasev1.Feedback_THROTTLED, durationpb.New(22*time.Second), "rate_limit_exceeded"
		return f
	}
	answer, err := admission.Report(patient(t), &quorleasev1.ReportRequest{Client: "c", Feedback: []*quorleasev1.Feedback{
		throttled(&quorleasev1.Feedback{Limit: "named", Key: "k"}),
		throttled(&quorleasev1.Feedback{Attributes: azure}),
		throttled(&quorleasev1.Feedback{Attributes: map[string]string{"provider": "other"}}),
		throttled(&quorleasev1.Feedback{Limit: "absent"}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	paused := &quorleasev1.Controlled{Paused: durationpb.New(22 * time.Second), PacePpm: 1_000_000}
	want := &quorleasev1.ReportResponse{Controlled: []*quorleasev1.Controlled{paused, paused, {Gone: true}, {Gone: true}}}
	if diff := cmp.Diff(want, answer, protocmp.Transform()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := node.Last().GetFeedback(); got.GetOwner() != "gateway-1" || got.GetClient() != "c" {
		t.Errorf("%v, want one of gateway-1", got)
	}
	for _, request := range []*quorleasev1.AcquireRequest{
		{Charges: []*quorleasev1.Charge{{Limit: "named", Key: "k", Dimension: "requests", Amount: 1}}},
		{Attributes: azure},
	} {
		denied, err := admission.Acquire(patient(t), request)
		if err != nil || denied.GetDenials()[0].GetReason() != quorleasev1.Reason_PAUSED {
			t.Errorf("%v: %v, %v; want paused", request, denied, err)
		}
	}
}

// TestTheFieldOfARefusedSignalIsTheCallers: the operation has other numbers where
// attributes fit none or several limits.
func TestTheFieldOfARefusedSignalIsTheCallers(t *testing.T) {
	t.Parallel()
	node, _, address := start(t, nil)
	node.Apply(fsmtest.Apply(fsmtest.Keyed("keyed", fsmtest.Dimension(t, "requests", "10/1s", 10))))
	_, err := quorleasev1.NewAdmissionClient(dial(t, address)).Report(patient(t), &quorleasev1.ReportRequest{
		Feedback: []*quorleasev1.Feedback{
			{Kind: quorleasev1.Feedback_SPEND_CAP, Attributes: map[string]string{"provider": "other"}},
			{Kind: quorleasev1.Feedback_SPEND_CAP, Limit: "keyed"},
		},
	})
	if e := server.ErrorOf(err); len(e.Fields) != 1 || e.Fields[0].Name != "feedback[1].key" {
		t.Errorf("%v, want feedback[1].key", err)
	}
}
