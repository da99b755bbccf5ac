package overview_test

import (
	"testing"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/cluster/events"
)

// TestAlertsSayWhom: a client by the name that its row has, whatever is in it, and a node
// where it is about one.
func TestAlertsSayWhom(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s site) {
		t := s.T
		const name = "batch\u00a0<b>scorer"
		book := s.node.Overview()
		book.Happened(events.Event{
			Kind: events.ClientRetryWarning, Severity: events.Warning, Client: events.CleanName(name),
		}, name)
		book.Happened(events.Event{Kind: events.FollowerLagging, Severity: events.Critical, Node: "n2"}, "")
		shown, err := s.hub.Now(t.Context(), &quorleasev1.OverviewWatchRequest{})
		if err != nil {
			t.Fatal(err)
		}
		alerts := shown.Response.GetAlerts()
		if len(alerts) != 2 || alerts[0].GetNode() != "n2" || alerts[1].GetClient() != name {
			t.Errorf("%v, want one of n2 and one of %q", alerts, name)
		}
	})
}
