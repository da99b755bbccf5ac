package grant

import (
	"github.com/quorlease/quorlease/cluster/escrow"
	"github.com/quorlease/quorlease/fsm"
	machine "github.com/quorlease/quorlease/fsm/escrow"
)

// termsOf are the terms of a limit for the wallet, with those of its overrides.
func termsOf(m *fsm.Machine, t machine.Terms) *escrow.Terms {
	terms := &escrow.Terms{
		Limit: t.Limit, Version: t.Version, Keyed: t.Keyed, Life: t.Life, Lease: t.Lease,
		Dimensions: dimensionsOf(t),
	}
	if len(t.Classes) > 1 || t.Classes[0] != "" {
		terms.Classes = t.Classes
	}
	if !t.Overrides {
		return terms
	}
	for _, o := range m.Limit(t.Limit).GetOverrides() {
		// A prefix is a key that has it.
		own, _ := m.Escrow().TermsOf(t.Limit, o.GetValue())
		terms.Overrides = append(terms.Overrides, escrow.Override{
			Value: o.GetValue(), Prefix: o.GetPrefix(), Dimensions: dimensionsOf(own),
		})
	}
	return terms
}

func dimensionsOf(t machine.Terms) []escrow.Dimension {
	list := make([]escrow.Dimension, len(t.Dimensions))
	for i, d := range t.Dimensions {
		list[i] = escrow.Dimension{Name: d.Name, Bursts: d.Bursts}
	}
	return list
}
