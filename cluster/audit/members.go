package audit

import (
	"slices"
	"time"

	"github.com/quorlease/quorlease/cluster/roster"
)

// operator is who changes members: nobody else may, and raft's log has no room for more.
const operator = "operator"

// Members records what came of an operator's word on who is a member, as applied at an
// index: the members before and after. Nothing is known before the first that this node
// has applied, and nothing recorded of it. It never waits.
func (l *Log) Members(index uint64, at time.Time, before, after []roster.Member) {
	if l == nil || len(before) == 0 {
		return
	}
	var list []Change
	add := func(change string, m roster.Member, value string) {
		list = append(list, Change{
			Time: at.UTC(), Index: index, Author: operator, Change: change, Member: m.Name, Value: bounded(value, keyMost),
		})
	}
	for _, m := range after {
		old, known := byID(before, m.RaftID)
		switch {
		case !known:
			add("added", m, m.Address)
		case m.Address != old.Address:
			add("moved", m, m.Address)
		case m.Voter && !old.Voter:
			add("promoted", m, "")
		case old.Voter && !m.Voter:
			add("demoted", m, "")
		}
	}
	for _, m := range before {
		if _, stays := byID(after, m.RaftID); !stays {
			add("removed", m, "")
		}
	}
	l.Changed(list...)
}

func byID(members []roster.Member, id string) (m roster.Member, ok bool) {
	i := slices.IndexFunc(members, func(m roster.Member) bool { return m.RaftID == id })
	if i < 0 {
		return roster.Member{}, false
	}
	return members[i], true
}
