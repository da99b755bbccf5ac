package alarm

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"fmt"

	"github.com/quorlease/quorlease/client/alert"
	"github.com/quorlease/quorlease/cluster/events"
)

// about names an incident: its kind, the member it is about where that is another
// node, and the key of a limit where it is about one.
type about struct {
	kind       events.Kind
	node       string
	limit, key string
}

// incidents are those that are open, with their ids.
type incidents map[about]string

// begins and ends say which events are the beginning of an incident and which are
// its end. A DiskStalled has none: the node stops.
func begins(e events.Event) bool {
	switch e.Kind {
	case events.QuorumLost, events.DiskStalled, events.SpendCapReached:
		return true
	case events.DiskLow, events.FollowerLagging:
		return e.Severity > events.Info
	default:
		return false
	}
}

func ends(e events.Event) bool {
	switch e.Kind {
	case events.QuorumRestored, events.LimitCleared:
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
	which := about{kind: e.Kind, node: e.Node}
	labels, values := named("member", e.Node), named("value", e.Value)
	switch e.Kind {
	case events.QuorumRestored:
		which.kind = events.QuorumLost
	case events.SpendCapReached, events.LimitCleared:
		which.kind, which.limit, which.key = events.SpendCapReached, e.Limit, e.Value
		labels, values = named("limit", e.Limit), nil
		if e.Value != "" {
			labels["key"] = e.Value
		}
	default:
	}
	id, open := i[which]
	said = alert.Alert{
		Kind: string(which.kind), ID: id, Severity: alert.Severity(e.Severity), Text: e.Text,
		Labels: labels, Values: values,
	}
	switch {
	case begins(e) && !open:
		said.ID, said.Started = newID(e), e.Time
		i[which] = said.ID
	case ends(e) && open:
		said.Resolved, said.Ended = true, e.Time
		delete(i, which)
	default:
		return alert.Alert{}, false
	}
	return said, true
}

// newID names a new incident. What stands in the log has one name at every node, so
// that a receiver can tell that they speak of one; what only this node saw has a
// random one.
func newID(e events.Event) string {
	if e.Index == 0 {
		return rand.Text()
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %d %s %s", e.Kind, e.Index, e.Time.UnixNano(), e.Limit, e.Value))
	return base32.StdEncoding.EncodeToString(sum[:])[:26]
}

// named is one text under a name, or nothing.
func named(name, text string) map[string]string {
	if text == "" {
		return nil
	}
	return map[string]string{name: text}
}
