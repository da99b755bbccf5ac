package fsm

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/check"
	"github.com/quorlease/quorlease/fsm/refuse"
	"github.com/quorlease/quorlease/fsm/tally"
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
		if err := tally.Check(s); err != nil {
			return nil, refuse.Wrong(refuse.At("slices", i, ""), err)
		}
	}
	from := tally.Process{Node: op.GetNode(), Boot: op.GetBoot()}
	for _, s := range op.GetSlices() {
		m.state.Count(from, s.GetClient(), tally.Report{
			Slice: s.GetSlice(),
			Count: tally.Count{
				Total: s.GetTotal(), Retries: s.GetRetries(), Throttled: s.GetThrottled(),
				Denied: s.GetDenied(), Early: s.GetEarly(),
			},
			Fault: tally.Fault{Text: s.GetError(), Times: s.GetErrors()},
		})
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
	return c.Tally.Admitted(max(now, m.state.Now))
}

// KnowsClient says whether anything is kept of a client.
func (m *Machine) KnowsClient(name string) bool { return m.state.FindClient(name) != nil }

// Fault is the commonest error that was reported for a client in its window.
func (m *Machine) Fault(now bucket.Instant, name string) tally.Fault {
	c := m.state.FindClient(name)
	if c == nil {
		return tally.Fault{}
	}
	return c.Tally.Commonest(max(now, m.state.Now))
}

// SliceOf is the length of the slices in which a client is counted, whether or not
// a retry budget fits it.
func (m *Machine) SliceOf(name string) time.Duration { return m.state.SliceOf(name) }

// Counted is what this replica has applied of one process's reports of a client
// in one slice. A node forgets its own count of a slice once it is here (T31).
func (m *Machine) Counted(from tally.Process, name string, slice int64) tally.Count {
	c := m.state.FindClient(name)
	if c == nil {
		return tally.Count{}
	}
	return c.Tally.Counted(from, slice)
}

// ClientStat is how one client stands with its retry budget.
type ClientStat struct {
	Client string
	// Count is what happened in the window, Throttled in the last hour.
	Count tally.Count
	// Fault is the commonest error that was reported for it.
	Fault tally.Fault
	// Budget is its retry budget, nil where none fits. It must not be changed.
	Budget *logv1.RetryBudget
	// Left is how many retries the budget still lets through, and Over that it has
	// none left.
	Left int64
	Over bool
	// Above: the fraction is above the one that warns.
	Above bool
	// FreesIn is how long it takes until the window lets the client through, if
	// nothing more is admitted; 0 where it is not over.
	FreesIn time.Duration
}

// Client is how one client stands.
func (m *Machine) Client(now bucket.Instant, name string) ClientStat {
	s := ClientStat{Client: name, Budget: m.state.BudgetFor(name)}
	c := m.state.FindClient(name)
	now = max(now, m.state.Now)
	if c != nil {
		s.Count, s.Fault = c.Tally.Recent(now), c.Tally.Commonest(now)
	}
	if s.Budget == nil {
		return s
	}
	rule := RuleOf(s.Budget)
	s.Left = rule.Headroom(s.Count.Total, s.Count.Retries)
	if s.Budget.GetMode() == logv1.Mode_MODE_OFF {
		return s
	}
	s.Over = s.Left == 0
	s.Above = s.Budget.GetWarnFraction() > 0 &&
		rule.Above(s.Count.Total, s.Count.Retries, s.Budget.GetWarnFraction())
	if s.Over && c != nil {
		counts := c.Tally.Window()
		s.FreesIn = rule.FreesIn(int64(now), &counts)
	}
	return s
}

// Clients are the clients with most retries, at most top; all where top is 0.
func (m *Machine) Clients(now bucket.Instant, top int) []ClientStat {
	now = max(now, m.state.Now)
	list := make([]ClientStat, 0, m.state.Clients())
	// The order does not matter: the list is sorted below.
	for c := range m.state.AllClients() {
		if count := c.Tally.Recent(now); count != (tally.Count{}) {
			list = append(list, ClientStat{Client: c.Name, Count: count})
		}
	}
	slices.SortFunc(list, func(a, b ClientStat) int {
		return cmp.Or(cmp.Compare(b.Count.Retries, a.Count.Retries), cmp.Compare(b.Count.Throttled, a.Count.Throttled),
			cmp.Compare(b.Count.Total, a.Count.Total), strings.Compare(a.Client, b.Client))
	})
	if top > 0 && top < len(list) {
		list = list[:top]
	}
	for i := range list {
		list[i] = m.Client(now, list[i].Client)
	}
	return list
}

// Retrying are the clients that have retried in their window, in no particular
// order.
func (m *Machine) Retrying() iter.Seq[string] {
	return func(yield func(string) bool) {
		for c := range m.state.AllClients() {
			if _, retries := c.Tally.Admitted(m.state.Now); retries > 0 && !yield(c.Name) {
				return
			}
		}
	}
}
