package authority

import (
	"fmt"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/retries"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// reportEvery is how often a node reports what it counted, where nothing makes it
// report sooner.
const reportEvery = time.Second

// node is one node's part in the retry budgets.
type node struct {
	authority *Authority
	desk      *retries.Desk
}

func newNode(a *Authority, i int) *node {
	n := &node{authority: a, desk: retries.NewDesk(fmt.Sprintf("n%d.1", i+1))}
	// Nodes start one after the other, as they do.
	a.stage.At(nil, time.Duration(i)*reportEvery/3, n.tick)
	return n
}

func (n *node) tick() {
	n.report()
	n.authority.stage.At(nil, reportEvery, n.tick)
}

func (n *node) report() {
	if report := n.desk.Counter.Report(n.authority.stage.Real()); report != nil {
		n.authority.propose(&logv1.Operation{Kind: &logv1.Operation_ReportRetries{ReportRetries: report}}, nil)
	}
}

// Admit asks a node's desk whether a request of the client passes its retry
// budget: no commit, no wait. The denial is nil where it does, and it is counted
// then.
func (a *Authority) Admit(at int, client string, attempt uint32) *logv1.Denial {
	n := a.nodes[at%len(a.nodes)]
	now := a.stage.Real()
	acquire := &logv1.Acquire{Client: client}
	ruling := n.desk.Decide(a.machine, retries.Ask{
		At: now, Now: bucket.Instant(now), Acquire: acquire, Attempt: attempt, Nodes: len(a.nodes),
	})
	result := &logv1.AcquireResult{Granted: ruling.Denial == nil}
	if ruling.Denial != nil {
		result.Denials = []*logv1.Denial{ruling.Denial}
	}
	n.desk.Answered(now, acquire, ruling, result, result.GetGranted())
	select {
	case <-n.desk.Counter.Due():
		n.report()
	default:
	}
	return ruling.Denial
}
