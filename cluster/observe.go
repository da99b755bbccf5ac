package cluster

import (
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/audit"
	"github.com/quorlease/quorlease/cluster/events"
	"github.com/quorlease/quorlease/cluster/identity"
	"github.com/quorlease/quorlease/cluster/notice"
	"github.com/quorlease/quorlease/cluster/overview"
	"github.com/quorlease/quorlease/cluster/roster"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/effect"
)

// Events returns what happened on this node.
func (n *Node) Events() *events.Ring { return n.events }

// Overview is what this node remembers of the last hour.
func (n *Node) Overview() *overview.Book { return n.overview }

// observe publishes what an entry did. Replaying the log after a restart
// publishes it again, under the same index.
func (n *Node) observe(s step) {
	n.grants.Applied(s.operations, s.results, s.effects)
	n.grants.Reached(s.index)
	limitsChanged := false
	for _, e := range s.effects {
		if e.Kind == effect.LimitWarning && !n.warned.Due(e.Limit, s.wall) {
			continue
		}
		if e.Kind == effect.LimitDeleted {
			n.warned.Forget(e.Limit)
		}
		limitsChanged = limitsChanged || e.Kind == effect.LimitChanged || e.Kind == effect.LimitDeleted
		if event, ok := n.eventOf(e); ok {
			event.Index, event.Time = s.index, s.wall
			n.events.Publish(event)
		}
	}
	if limitsChanged {
		var limits []*logv1.Limit
		n.fsm.view(func(m *fsm.Machine) { limits, _ = m.Limits("") })
		n.configure(limits)
	}
	n.audit.Applied(audit.Entry{Index: s.index, Wall: s.wall, Results: s.results, Effects: s.effects}, n.revisions)
	n.overview.Applied(time.Now(), s.wall, s.reports)
	n.waiting.Applied(s.results, s.effects)
}

// membersChanged records that an entry named other members than before, at the time at
// which its leader wrote it.
func (n *Node) membersChanged(index uint64, before []roster.Member) {
	at := n.config.Wall()
	var log raft.Log
	if err := n.stores.Log.GetLog(index, &log); err == nil && !log.AppendedAt.IsZero() {
		at = log.AppendedAt
	}
	n.audit.Members(index, at, before, n.roster.Applied())
}

func (n *Node) revisions() (list []*fsm.Revision) {
	n.fsm.view(func(m *fsm.Machine) { list = m.History(0) })
	return list
}

// configure tells those who need to know which limits there are.
func (n *Node) configure(limits []*logv1.Limit) {
	n.metrics.Configure(limits)
	n.waiting.Configure(limits)
	n.overview.Configure(limits)
}

// restored notes what a snapshot skipped.
func (n *Node) restored(m *fsm.Machine) {
	n.restoreRoster()
	n.events.Restored(m.Index())
	n.overview.Restored(time.Now(), m.Clients(m.Now(), overview.ClientPlaces))
	limits, _ := m.Limits("")
	n.configure(limits)
	n.grants.Restored(m)
	clear(n.announced)
	for _, record := range m.Nodes() {
		n.announced[record.GetRaftId()] = true
	}
}

// eventOf translates an effect; ok is false for those that nobody watches.
func (n *Node) eventOf(e effect.Effect) (event events.Event, ok bool) {
	switch e.Kind {
	case effect.NodeSet:
		id := e.Node.GetRaftId()
		known := n.announced[id]
		n.announced[id] = true
		return notice.Member(events.MemberAdded, events.Info, e.Node), !known
	case effect.NodeRemoved:
		delete(n.announced, e.Node.GetRaftId())
		return notice.Member(events.MemberRemoved, events.Warning, e.Node), true
	default:
		return notice.Effect(e)
	}
}

// leaderEvent publishes that another node leads.
func (n *Node) leaderEvent(id raft.ServerID) {
	name := identity.NameOf(string(id))
	n.events.Publish(events.Event{
		Kind: events.LeaderChanged, Severity: events.Info, Value: name,
		Text: fmt.Sprintf("%s leads in term %d", name, n.raft.CurrentTerm()),
	})
}
