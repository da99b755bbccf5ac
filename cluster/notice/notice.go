// Package notice puts into words, as events, what a node saw happen.
package notice

import (
	"fmt"
	"strconv"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/events"
	"github.com/quorlease/quorlease/cluster/identity"
	"github.com/quorlease/quorlease/cluster/probe"
	"github.com/quorlease/quorlease/fsm/effect"
)

// Effect is what an entry did to limits and leases; ok is false for what nobody
// watches.
func Effect(e effect.Effect) (event events.Event, ok bool) {
	switch e.Kind {
	case effect.LimitChanged:
		return limitEvent(e.Limit, "limit "+e.Limit+" was changed"), true
	case effect.LimitDeleted:
		return limitEvent(e.Limit, "limit "+e.Limit+" was deleted"), true
	case effect.BudgetChanged:
		return limitEvent(e.Value, "retry budget "+e.Value+" was changed"), true
	case effect.Adjusted:
		return events.Event{
			Kind: events.LimitAdjusted, Severity: events.Warning, Limit: e.Limit, Value: e.Value,
			Text: fmt.Sprintf("%s of key %q of limit %s: %s, by %q: %s",
				e.Dimension, e.Key, e.Limit, e.Value, e.Client, e.Text),
		}, true
	case effect.DebtWrittenOff:
		return events.Event{
			Kind: events.DebtWrittenOff, Severity: events.Warning, Limit: e.Limit, Client: e.Client, Value: e.Value,
			Text: fmt.Sprintf("%s of key %q of limit %s: %s", e.Dimension, e.Key, e.Limit, e.Text),
		}, true
	case effect.LimitWarning:
		return warning(e), true
	case effect.QuotaWarning:
		return quota(e), true
	default:
		return Feedback(e)
	}
}

func limitEvent(limit, text string) events.Event {
	return events.Event{Kind: events.LimitChanged, Severity: events.Info, Limit: limit, Text: text}
}

// Member is a change of a member's record.
func Member(kind events.Kind, severity events.Severity, record *logv1.NodeRecord) events.Event {
	name, at := record.GetName(), ""
	if name == "" {
		// A record need not have more than the Raft id, which begins with the name.
		name = identity.NameOf(record.GetRaftId())
	}
	if record.GetPeer() != "" {
		at = " at " + record.GetPeer()
	}
	return events.Event{
		Kind: kind, Severity: severity, Value: name, Text: fmt.Sprintf("%s (%s)%s", name, record.GetRaftId(), at),
	}
}

// Quorum is an incident, or its end; ok is false for what is none.
func Quorum(c probe.Change) (event events.Event, ok bool) {
	event = events.Event{Value: strconv.Itoa(len(c.View.Reached))}
	reach := fmt.Sprintf("%d of %d voters are within reach", len(c.View.Reached), c.View.Voters)
	switch c.Kind {
	case probe.QuorumLost:
		event.Kind, event.Severity, event.Text = events.QuorumLost, events.Critical, c.View.State.String()+": "+reach
	case probe.QuorumRestored:
		event.Kind, event.Severity, event.Text = events.QuorumRestored, events.Info, reach
	case probe.FollowerLagging, probe.FollowerCaughtUp:
		event.Kind, event.Severity, event.Node = events.FollowerLagging, events.Warning, identity.NameOf(c.RaftID)
		event.Value = strconv.FormatUint(c.Lag, 10)
		event.Text = fmt.Sprintf("%s is %d entries behind", event.Node, c.Lag)
		if c.Kind == probe.FollowerCaughtUp {
			event.Severity = events.Info
			event.Text = fmt.Sprintf("%s is no longer seen lagging: %d entries behind", event.Node, c.Lag)
		}
	default:
		return events.Event{}, false
	}
	return event, true
}
