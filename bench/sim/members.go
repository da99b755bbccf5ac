package sim

import (
	"fmt"
	"slices"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/bench/sim/member"
	"github.com/quorlease/quorlease/bench/sim/rules"
	"github.com/quorlease/quorlease/bench/sim/trap"
)

// addNodes brings in the nodes. In every fourth world they come and go.
func (w *World) addNodes(seed uint64) {
	founders := 3 + 2*w.stage.Rand.IntN(2)
	changing := w.trap == trap.None && seed%4 == 3 || w.trap == trap.SameAgain
	if changing {
		founders = member.Founders
		w.group.Founders = founders
	}
	for i := range founders {
		w.addNode(fmt.Sprint("n", i), i == 0 && !changing)
	}
	w.present = w.nodes
	if !changing {
		return
	}
	w.members = member.New(member.Config{
		Stage: w.stage, Network: w.network, Judge: w.judge, Stats: &w.stats, Trap: w.trap,
		Active: func() bool { return w.faulty },
		Begun:  func(id int) { w.nodes[id].start() },
		Joined: w.joined, Ended: w.ended,
		Known:   func(id int) []*logv1.NodeRecord { return w.nodes[id].replica.Nodes() },
		Propose: func(id int, op *logv1.Operation) { w.nodes[id].route(&call{op: op, from: w.nodes[id].host}) },
		Leads:   func(id int) bool { return w.nodes[id].host.Runs() && w.nodes[id].serving != 0 },
	})
	w.group.Changed = w.members.Changed
	w.present = slices.Clone(w.nodes)
	for i := range member.Spares {
		w.addNode(fmt.Sprint("x", i), false).host.Kill()
	}
	for _, n := range w.nodes {
		w.members.Add(n.host, n.member)
	}
}

// joined takes that a node is a member, which clients may ask.
func (w *World) joined(id int) {
	if !slices.Contains(w.present, w.nodes[id]) && !w.members.Gone(id) {
		w.present = append(w.present, w.nodes[id])
	}
}

// ended takes that a node never comes back.
func (w *World) ended(id int) {
	w.present = slices.DeleteFunc(slices.Clone(w.present), func(n *node) bool { return n.id == id })
}

// serves is how many members there are by what a node has applied.
func (n *node) serves() int {
	if n.world.members == nil {
		return len(n.world.nodes)
	}
	return n.world.members.Serving(n.id)
}

// addBudget has the judge look at retries: as few members as there may be have the largest
// parts.
func (w *World) addBudget() {
	least, most := len(w.nodes), len(w.nodes)
	if w.members != nil {
		least = member.Least - 1
	}
	w.judge.Budget(rules.BudgetWindow, headroom, least, most)
}
