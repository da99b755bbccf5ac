package cluster

import (
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/budget"
	"github.com/quorlease/quorlease/cluster/retries"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// newBudgets returns the retry budgets of a node that knows its Raft id.
func (n *Node) newBudgets(desk *retries.Desk) *budget.Office {
	return budget.New(budget.Config{
		Desk: desk,
		View: func(read func(*fsm.Machine, bucket.Instant)) {
			n.fsm.view(func(m *fsm.Machine) { read(m, n.fsm.now(m)) })
		},
		Elapsed: n.clock.Elapsed, Serving: n.serving, WouldRefuse: n.metrics.WouldRefuse, Publish: n.events.Publish,
		Propose: func(report *logv1.ReportRetries) {
			n.Submit(&Pending{
				Operation: &logv1.Operation{Kind: &logv1.Operation_ReportRetries{ReportRetries: report}},
				Done:      func(*logv1.Result, error) {},
			})
		},
	})
}

// CountTried counts what a client did by permits that it held, as it reports
// them: differences since its last report.
func (n *Node) CountTried(client string, tried retries.Tried) { n.budgets.CountTried(client, tried) }

// serving is the number of members, 0 while this node is not one of them.
func (n *Node) serving() int {
	servers := n.configuration().Servers
	for _, s := range servers {
		if s.ID == n.id {
			return len(servers)
		}
	}
	return 0
}
