package cluster

import (
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/retries"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/tally"
)

// reportEvery is how often a node reports the requests it counted, where nothing
// makes it report sooner.
const reportEvery = time.Second

// refusedRetry returns the denial of an acquire that its client's retry budget
// refuses, else nil. What is admitted is held until finishRetry. Deciding costs
// no commit.
func (n *Node) refusedRetry(p *Pending) *logv1.Result {
	acquire := p.Operation.GetAcquire()
	if acquire.GetClient() == "" {
		return nil
	}
	ask := retries.Ask{Acquire: acquire, Attempt: p.Attempt}
	n.fsm.view(func(m *fsm.Machine) {
		if m.BudgetFor(acquire.GetClient()) == nil {
			// Spare the rest.
			return
		}
		ask.At, ask.Now, ask.Nodes = n.clock.Elapsed(), n.fsm.now(m), n.serving()
		p.ruling = n.desk.Decide(m, ask)
	})
	if p.ruling.Warning != nil {
		n.metrics.WouldRefuse(p.ruling.Budget, p.ruling.Warning.GetReason())
	}
	if p.ruling.Denial == nil {
		return nil
	}
	return &logv1.Result{Kind: &logv1.Result_Acquire{
		Acquire: &logv1.AcquireResult{Denials: []*logv1.Denial{p.ruling.Denial}},
	}}
}

// finishRetry ends the hold of an acquire. One that was granted counts, and one
// of which nobody knows; a denial counts as a denial only. An acquire that a
// budget in mode warn would have refused is answered so.
func (n *Node) finishRetry(p *Pending, result *logv1.Result, err error) {
	if p.ruling.Budget == nil {
		return
	}
	ruling, acquire := p.ruling, result.GetAcquire()
	p.ruling = retries.Ruling{}
	if acquire != nil && ruling.Warning != nil && ruling.Budget.GetMode() == logv1.Mode_MODE_WARN {
		acquire.Warnings = append(acquire.Warnings, ruling.Warning)
	}
	client := p.Operation.GetAcquire().GetClient()
	at := n.clock.Elapsed()
	denied := n.desk.Answered(at, p.Operation.GetAcquire(), ruling, acquire, MayHaveHappened(err))
	if denied != (tally.Count{}) {
		n.CountTried(client, retries.Tried{Count: denied})
	}
}

// CountTried counts what a client did that no node decided: by permits that it
// held, as it reports them. The counts are differences since its last report.
func (n *Node) CountTried(client string, tried retries.Tried) {
	n.fsm.view(func(m *fsm.Machine) { n.desk.Note(m, n.clock.Elapsed(), n.fsm.now(m), client, tried) })
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
