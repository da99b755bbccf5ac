package cluster

import (
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/retries"
	"github.com/quorlease/quorlease/fsm"
)

// reportEvery is how often a node reports the requests it counted, where nothing
// makes it report sooner.
const reportEvery = time.Second

// refusedRetry returns the denial of an acquire that its client's retry budget
// refuses, else nil. What is admitted is held until finishRetry. Deciding costs
// no commit.
func (n *Node) refusedRetry(p *Pending) *logv1.Result {
	client := p.Operation.GetAcquire().GetClient()
	if client == "" {
		return nil
	}
	ask := retries.Ask{Client: client, Attempt: p.Attempt}
	var denial *logv1.Denial
	n.fsm.view(func(m *fsm.Machine) {
		if m.BudgetFor(client) == nil {
			// Spare the rest.
			return
		}
		ask.At, ask.Now, ask.Nodes = n.clock.Elapsed(), n.fsm.now(m), n.serving()
		denial, p.hold, p.held = n.desk.Decide(m, ask)
	})
	if denial == nil {
		return nil
	}
	return &logv1.Result{Kind: &logv1.Result_Acquire{
		Acquire: &logv1.AcquireResult{Denials: []*logv1.Denial{denial}},
	}}
}

// finishRetry ends the hold of an acquire. One that was granted counts, and one
// of which nobody knows; a denial never does, and the repetition of a lease id
// is no new request.
func (n *Node) finishRetry(p *Pending, result *logv1.Result, err error) {
	if !p.held {
		return
	}
	recorded := MayHaveHappened(err)
	if result != nil {
		acquire := result.GetAcquire()
		recorded = acquire.GetGranted() && !acquire.GetRepeated()
	}
	n.desk.Counter.Finish(n.clock.Elapsed(), p.hold, recorded)
	p.hold, p.held = retries.Hold{}, false
}

// keepReported proposes the counts until stop is closed. A report that is lost
// does no harm: the next one is cumulative, and a count is forgotten only when
// the own replica has applied it.
func (n *Node) keepReported(stop <-chan struct{}) {
	ticker := time.NewTicker(reportEvery)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
		case <-n.desk.Counter.Due():
		}
		if report := n.desk.Counter.Report(n.clock.Elapsed()); report != nil {
			n.Submit(&Pending{
				Operation: &logv1.Operation{Kind: &logv1.Operation_ReportRetries{ReportRetries: report}},
				Done:      func(*logv1.Result, error) {},
			})
		}
	}
}

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
