package incident_test

import (
	"testing"

	"github.com/quorlease/quorlease/cluster/events"
	"github.com/quorlease/quorlease/cluster/incident"
)

// TestOf: which kinds begin and end what, and who sees it.
func TestOf(t *testing.T) {
	t.Parallel()
	const info, warning, critical = events.Info, events.Warning, events.Critical
	node, client := incident.Subject{Kind: events.DiskLow, Node: "n2"}, incident.Subject{Client: "c"}
	key := incident.Subject{Kind: events.LimitBlocked, Limit: "l", Key: "k"}
	of := func(s incident.Subject, kind events.Kind) incident.Subject {
		s.Kind = kind
		return s
	}
	for _, row := range []struct {
		kind     events.Kind
		severity events.Severity
		want     incident.Subject
		turn     incident.Turn
		shared   bool
	}{
		{events.QuorumLost, critical, of(node, events.QuorumLost), incident.Begins, false},
		{events.QuorumRestored, info, of(node, events.QuorumLost), incident.Ends, false},
		{events.DiskStalled, critical, of(node, events.DiskStalled), incident.Begins, false},
		{events.DiskLow, critical, node, incident.Begins, false},
		{events.DiskLow, info, node, incident.Ends, false},
		{events.FollowerLagging, warning, of(node, events.FollowerLagging), incident.Begins, false},
		{events.FollowerLagging, info, of(node, events.FollowerLagging), incident.Ends, false},
		{events.ClientRetryWarning, warning, of(client, events.ClientRetryWarning), incident.Begins, true},
		{events.ClientRetryWarning, info, of(client, events.ClientRetryWarning), incident.Ends, true},
		{events.ClientOverBudget, warning, of(client, events.ClientOverBudget), incident.Begins, true},
		{events.ClientOverBudget, info, of(client, events.ClientOverBudget), incident.Ends, true},
		{events.LimitBlocked, warning, key, incident.Begins, true},
		{events.SpendCapReached, critical, key, incident.Begins, true},
		{events.LimitCleared, info, key, incident.Ends, true},
		{events.LimitPaused, info, incident.Subject{Kind: events.LimitPaused}, incident.Tells, false},
		{events.LimitWarning, warning, incident.Subject{Kind: events.LimitWarning}, incident.Tells, false},
		{events.LeaderChanged, info, incident.Subject{Kind: events.LeaderChanged}, incident.Tells, false},
	} {
		e := events.Event{Kind: row.kind, Severity: row.severity, Node: "n2", Limit: "l", Value: "k", Client: "shown"}
		got, turn := incident.Of(e, "c")
		if got != row.want || turn != row.turn || got.Shared() != row.shared {
			t.Errorf("%s: %+v, %d, shared %v; want %+v, %d, %v",
				row.kind, got, turn, got.Shared(), row.want, row.turn, row.shared)
		}
		if got.OfClient() != (got.Client == "c") {
			t.Errorf("%s: of a client: %v", row.kind, got.OfClient())
		}
	}
}
