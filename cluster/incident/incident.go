// Package incident says which events of a node begin something that lasts and which
// end it, and what that is about: for whoever shows what is open, and for whoever
// tells people of it.
//
// What is *not* here: what is open, and who is told. The package is pure.
package incident

import "github.com/quorlease/quorlease/cluster/events"

// Subject is what an incident is about: its kind, and where it takes more than that to
// tell it from others, the rest.
type Subject struct {
	// Kind is that of its beginning; LimitBlocked for a key that has reached its spend
	// cap too.
	Kind                     events.Kind
	Node, Client, Limit, Key string
}

// Turn is what an event is to an incident.
type Turn int

// The turns.
const (
	// Tells neither begins nor ends anything.
	Tells Turn = iota
	Begins
	Ends
)

// Of says what an event is about, and whether an incident begins or ends with it. Nothing
// ends a DiskStalled: the node stops. client is whom the event is about, under the name by
// which the caller tells clients apart.
func Of(e events.Event, client string) (Subject, Turn) {
	bySeverity := Ends
	if e.Severity > events.Info {
		bySeverity = Begins
	}
	switch e.Kind {
	case events.QuorumLost, events.DiskStalled:
		return Subject{Kind: e.Kind, Node: e.Node}, Begins
	case events.QuorumRestored:
		return Subject{Kind: events.QuorumLost, Node: e.Node}, Ends
	case events.DiskLow, events.FollowerLagging:
		return Subject{Kind: e.Kind, Node: e.Node}, bySeverity
	case events.ClientRetryWarning, events.ClientOverBudget:
		return Subject{Kind: e.Kind, Client: client}, bySeverity
	case events.LimitBlocked, events.SpendCapReached:
		// A key is blocked once, whichever of the two says so last.
		return Subject{Kind: events.LimitBlocked, Limit: e.Limit, Key: e.Value}, Begins
	case events.LimitCleared:
		return Subject{Kind: events.LimitBlocked, Limit: e.Limit, Key: e.Value}, Ends
	default:
		return Subject{Kind: e.Kind}, Tells
	}
}

// OfClient says whether it is what a client does, and not how the cluster is.
func (s Subject) OfClient() bool { return s.Client != "" }

// Shared says whether every node sees it, each from its own replica, and not one alone.
func (s Subject) Shared() bool { return s.Client != "" || s.Kind == events.LimitBlocked }
