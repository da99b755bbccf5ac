package alarm

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"fmt"

	"github.com/quorlease/quorlease/client/alert"
	"github.com/quorlease/quorlease/cluster/events"
)

// about names an incident: its kind, and what it is about: a member where that is
// another node, the key of a limit, or a client.
type about struct {
	kind               events.Kind
	node               string
	limit, key, client string
}

// incidents are those that are open, with their ids.
type incidents map[about]string

// incidentsMax bounds them: clients choose their names. The notifier keeps fewer.
const incidentsMax = 1024

// isOfClient says whether the incident is what a client does, and not how the node is.
func isOfClient(kind events.Kind) bool {
	return kind == events.ClientRetryWarning || kind == events.ClientOverBudget
}

// begins and ends say which events are the beginning of an incident and which are
// its end. A DiskStalled has none: the node stops.
func begins(e events.Event) bool {
	switch e.Kind {
	case events.QuorumLost, events.DiskStalled, events.SpendCapReached:
		return true
	case events.DiskLow, events.FollowerLagging, events.ClientRetryWarning, events.ClientOverBudget:
		return e.Severity > events.Info
	default:
		return false
	}
}

func ends(e events.Event) bool {
	switch e.Kind {
	case events.QuorumRestored, events.LimitCleared:
		return true
	case events.DiskLow, events.FollowerLagging, events.ClientRetryWarning, events.ClientOverBudget:
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
	case events.ClientRetryWarning, events.ClientOverBudget:
		which.client = e.Client
		labels, values = named("client", e.Client), figures(e)
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

// figures are those of a client that retries, none where they were missed.
func figures(e events.Event) map[string]string {
	if e.Value == "" {
		return nil
	}
	values := map[string]string{"fraction": e.Value, "window": e.Window.String()}
	if e.Error != "" {
		values["error"] = e.Error
	}
	return values
}

// newID names a new incident. What stands in the log has one name at every node, so
// that a receiver can tell that they speak of one, and so has what each of them
// sees in the log's figures; what only this node saw has a random one.
func newID(e events.Event) string {
	var name []byte
	switch {
	case e.Index != 0:
		name = fmt.Appendf(nil, "%s %d %d %s %s", e.Kind, e.Index, e.Time.UnixNano(), e.Limit, e.Value)
	case e.Bout != 0:
		name = fmt.Appendf(nil, "%s %d %s", e.Kind, e.Bout, e.Client)
	default:
		return rand.Text()
	}
	sum := sha256.Sum256(name)
	return base32.StdEncoding.EncodeToString(sum[:])[:26]
}

// named is one text under a name, or nothing.
func named(name, text string) map[string]string {
	if text == "" {
		return nil
	}
	return map[string]string{name: text}
}
