package fsm

import (
	"cmp"
	"slices"
	"strings"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/check"
	"github.com/quorlease/quorlease/fsm/refuse"
	"github.com/quorlease/quorlease/fsm/state"
)

// applyReportRetries takes one node's cumulative counts. There is nothing to
// refuse in a slice that is out of the window, or in a client beyond the cap: it
// does not count.
func (m *Machine) applyReportRetries(op *logv1.ReportRetries) (*logv1.Result, error) {
	if err := refuse.Text("node", op.GetNode(), 1, check.MaxText); err != nil {
		return nil, err
	}
	if n := len(op.GetSlices()); n > maxSlices {
		return nil, refuse.Field("slices", "%d: must be at most %d", n, maxSlices)
	}
	for i, s := range op.GetSlices() {
		if err := check.Text("client", s.GetClient(), 1, check.MaxText); err != nil {
			return nil, refuse.Wrong(refuse.At("slices", i, ""), err)
		}
		if s.GetTotal() < 0 || s.GetTotal() > state.MaxCount || s.GetRetries() < 0 || s.GetRetries() > s.GetTotal() {
			return nil, refuse.Field(refuse.At("slices", i, "total"),
				"%d with %d retries: must be from 0 to %d, and the retries among them",
				s.GetTotal(), s.GetRetries(), state.MaxCount)
		}
	}
	from := state.Process{Node: op.GetNode(), Boot: op.GetBoot()}
	for _, s := range op.GetSlices() {
		m.state.Count(from, s.GetClient(), s.GetSlice(), state.Count{Total: s.GetTotal(), Retries: s.GetRetries()})
	}
	return done(), nil
}

// ClientCounts is what a client was admitted in the window of its retry budget,
// as far as the nodes have reported.
func (m *Machine) ClientCounts(now bucket.Instant, name string) (total, retries int64) {
	c := m.state.FindClient(name)
	if c == nil {
		return 0, 0
	}
	return c.Counts(max(now, m.state.Now))
}

// Counted is what this replica has applied of one process's reports of a client
// in one slice. A node forgets its own count of a slice once it is here (T31).
func (m *Machine) Counted(node string, boot uint64, name string, slice int64) (total, retries int64) {
	c := m.state.FindClient(name)
	if c == nil {
		return 0, 0
	}
	return c.Counted(node, boot, slice)
}

// ClientStat is how one client stands with its retry budget.
type ClientStat struct {
	Client string
	// Total and Retries were admitted in the window.
	Total, Retries int64
	// Left is how many retries the budget still lets through.
	Left int64
	// Budget is the name of the retry budget, empty where none fits.
	Budget string
	// Over: the budget refuses the client now.
	Over bool
}

// Clients are the clients with most retries, at most top; all where top is 0.
func (m *Machine) Clients(now bucket.Instant, top int) []ClientStat {
	list := make([]ClientStat, 0, m.state.Clients())
	// The order does not matter: the list is sorted below.
	for c := range m.state.AllClients() {
		if total, retries := c.Counts(max(now, m.state.Now)); total > 0 {
			list = append(list, ClientStat{Client: c.Name, Total: total, Retries: retries})
		}
	}
	slices.SortFunc(list, func(a, b ClientStat) int {
		return cmp.Or(cmp.Compare(b.Retries, a.Retries), cmp.Compare(b.Total, a.Total), strings.Compare(a.Client, b.Client))
	})
	if top > 0 && top < len(list) {
		list = list[:top]
	}
	for i := range list {
		s := &list[i]
		if b := m.state.BudgetFor(s.Client); b != nil {
			s.Budget, s.Left = b.GetName(), RuleOf(b).Headroom(s.Total, s.Retries)
			s.Over = s.Left == 0
		}
	}
	return list
}
