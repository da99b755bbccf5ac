package sim

import (
	"github.com/quorlease/quorlease/bench/sim/rules"
)

// settled checks what must be so in the end.
func (w *World) settled() {
	for _, n := range w.nodes {
		switch {
		case n.replica.Index()+lagMost < w.last:
			w.judge.Complain("liveness", "%s has applied %d of %d", n.host.Name, n.replica.Index(), w.last)
		case n.replica.Hash() != n.replica.Recount():
			w.judge.Complain("G9", "the hash of %s is %016x, the recount %016x", n.host.Name, n.replica.Hash(),
				n.replica.Recount())
		}
	}
	for _, c := range w.clients {
		if c.fallback.machine.Away() {
			w.judge.Complain("liveness", "%s decides by itself %v after the faults", c.name, quietFor)
		}
	}
	w.judge.Reported()
	if w.storm != nil && w.judge.Exhausted() < w.stage.Real()-quietFor+rules.BudgetWindow {
		w.judge.Complain("G12", "the nodes' parts used up less than the rule leaves, all the time")
	}
	w.wholeAgain()
	w.witness.Freed()
	for _, l := range w.limits {
		if l.GetUnlimited() {
			continue
		}
		keys := []string{""}
		if l.GetKeyed() {
			keys = []string{"k0", "k1", "k2", "never seen"}
		}
		for _, key := range keys {
			w.witness.Paid(l, key)
			w.witness.Served(l, key)
		}
	}
}
