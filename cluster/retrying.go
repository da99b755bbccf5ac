package cluster

import (
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/budget"
	"github.com/quorlease/quorlease/cluster/events"
	"github.com/quorlease/quorlease/cluster/retries"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// newBudgets returns the retry budgets of a node that knows its Raft id.
func (n *Node) newBudgets(desk *retries.Desk) *budget.Office {
	return budget.New(budget.Config{
		Desk: desk, View: n.viewNow, Revision: n.fsm.revision.Load,
		Elapsed: n.clock.Elapsed, Serving: func() int { return n.roster.Serving(string(n.id)) },
		WouldRefuse: n.metrics.WouldRefuse, Publish: n.events.Publish,
		Propose: func(report *logv1.ReportRetries) {
			n.Submit(&Pending{
				Operation: &logv1.Operation{Kind: &logv1.Operation_ReportRetries{ReportRetries: report}},
				Done:      func(*logv1.Result, error) {},
			})
		},
	})
}

// viewNow runs read with the machine and authority time, while no entry is applied.
func (n *Node) viewNow(read func(*fsm.Machine, bucket.Instant)) {
	n.fsm.view(func(m *fsm.Machine) { read(m, n.fsm.now(m)) })
}

// CountTried counts what a client did by permits that it held, as it reports
// them: differences since its last report.
func (n *Node) CountTried(client string, tried retries.Tried) {
	n.metrics.Tried(tried.Count)
	n.budgets.CountTried(client, tried)
}

// Firing says whether an incident of a client, by its name in events, is not over.
func (n *Node) Firing(kind events.Kind, client string) bool { return n.budgets.Firing(kind, client) }
