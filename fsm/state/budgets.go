package state

import (
	"slices"
	"strings"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/record"
)

// budgets are the retry budgets, ready to be looked up.
type budgets struct {
	// list is in the order of names.
	list []*logv1.RetryBudget
	// exact has those for one client, prefixes those that end in a star, the
	// longest first: the most specific one counts.
	exact    map[string]*logv1.RetryBudget
	prefixes []prefix
}

type prefix struct {
	text   string
	budget *logv1.RetryBudget
}

func newBudgets(list []*logv1.RetryBudget) budgets {
	b := budgets{list: list, exact: make(map[string]*logv1.RetryBudget)}
	for _, one := range list {
		if text, starred := strings.CutSuffix(one.GetClient(), "*"); starred {
			b.prefixes = append(b.prefixes, prefix{text, one})
			continue
		}
		b.exact[one.GetClient()] = one
	}
	slices.SortFunc(b.prefixes, func(x, y prefix) int { return len(y.text) - len(x.text) })
	return b
}

func (b *budgets) find(client string) *logv1.RetryBudget {
	if one := b.exact[client]; one != nil {
		return one
	}
	for _, p := range b.prefixes {
		if strings.HasPrefix(client, p.text) {
			return p.budget
		}
	}
	return nil
}

// BudgetFor is the most specific retry budget for a client, nil where none fits.
// It must not be changed.
func (s *State) BudgetFor(client string) *logv1.RetryBudget { return s.budgets.find(client) }

// Budgets are the retry budgets in the order of their names. They must not be
// changed.
func (s *State) Budgets() []*logv1.RetryBudget { return s.budgets.list }

// FindBudget is the retry budget with a name, or nil.
func (s *State) FindBudget(name string) *logv1.RetryBudget {
	i, found := slices.BinarySearchFunc(s.budgets.list, name, func(one *logv1.RetryBudget, name string) int {
		return strings.Compare(one.GetName(), name)
	})
	if !found {
		return nil
	}
	return s.budgets.list[i]
}

// SetBudgets replaces the retry budgets; list is in the order of names, and no
// two are for the same clients.
func (s *State) SetBudgets(list []*logv1.RetryBudget) {
	for _, b := range s.budgets.list {
		s.sum -= record.SumBudget(b)
	}
	for _, b := range list {
		s.sum += record.SumBudget(b)
	}
	s.budgets = newBudgets(list)
	s.resliceClients()
}

// Nodes are the members in the order of their Raft ids. They must not be
// changed.
func (s *State) Nodes() []*logv1.NodeRecord { return s.nodes }

// FindNode is the index of a member, or where it would have to be.
func (s *State) FindNode(raftID string) (int, bool) {
	return slices.BinarySearchFunc(s.nodes, raftID, func(n *logv1.NodeRecord, id string) int {
		return strings.Compare(n.GetRaftId(), id)
	})
}

// SetNode takes a member's record into the state. Readers and snapshots keep the
// list as it was.
func (s *State) SetNode(node *logv1.NodeRecord) {
	i, found := s.FindNode(node.GetRaftId())
	nodes := slices.Clone(s.nodes)
	if found {
		s.sum -= record.SumNode(nodes[i])
		nodes[i] = node
	} else {
		nodes = slices.Insert(nodes, i, node)
	}
	s.nodes = nodes
	s.sum += record.SumNode(node)
}

// RemoveNode forgets a member, if it is known, and returns its record.
func (s *State) RemoveNode(raftID string) *logv1.NodeRecord {
	i, found := s.FindNode(raftID)
	if !found {
		return nil
	}
	node := s.nodes[i]
	s.sum -= record.SumNode(node)
	s.nodes = slices.Concat(s.nodes[:i], s.nodes[i+1:])
	return node
}
