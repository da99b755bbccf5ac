package alarm

import (
	"crypto/rand"

	"github.com/quorlease/quorlease/client/alert"
	"github.com/quorlease/quorlease/cluster/events"
)

// about names an incident: its kind, and the member it is about where that is
// another node.
type about struct {
	kind events.Kind
	node string
}

// incidents are those that are open, with their ids.
type incidents map[about]string

// begins and ends say which events are the beginning of an incident and which are
// its end. A DiskStalled has none: the node stops.
func begins(e events.Event) bool {
	switch e.Kind {
	case events.QuorumLost, events.DiskStalled:
		return true
	case events.DiskLow, events.FollowerLagging:
		return e.Severity > events.Info
	default:
		return false
	}
}

func ends(e events.Event) bool {
	switch e.Kind {
	case events.QuorumRestored:
		return true
	case events.DiskLow, events.FollowerLagging:
		return e.Severity == events.Info
	default:
		return false
	}
}

// observe says what an event means for people; ok is false where nothing, or
// nothing new.
func (i incidents) observe(e events.Event) (said alert.Alert, ok bool) {
	which := about{e.Kind, e.Node}
	if e.Kind == events.QuorumRestored {
		which.kind = events.QuorumLost
	}
	id, open := i[which]
	said = alert.Alert{
		Kind: string(which.kind), ID: id, Severity: alert.Severity(e.Severity), Text: e.Text,
		Labels: named("member", e.Node), Values: named("value", e.Value),
	}
	switch {
	case begins(e) && !open:
		said.ID, said.Started = rand.Text(), e.Time
		i[which] = said.ID
	case ends(e) && open:
		said.Resolved, said.Ended = true, e.Time
		delete(i, which)
	default:
		return alert.Alert{}, false
	}
	return said, true
}

// named is one text under a name, or nothing.
func named(name, text string) map[string]string {
	if text == "" {
		return nil
	}
	return map[string]string{name: text}
}
