package authority

import (
	"fmt"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/retries"
	"github.com/quorlease/quorlease/cluster/warn"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// reportEvery is how often a node reports what it counted, where nothing makes it
// do so sooner: as in cluster/budget.
const reportEvery = time.Second

// node is one node's part in the retry budgets.
type node struct {
	authority *Authority
	number    int
	desk      *retries.Desk
	rounds    *warn.Rounds
	// turn numbers the last moment at which all were to be looked at.
	turn uint64
}

func newNode(a *Authority, i int) *node {
	n := &node{authority: a, number: i, desk: retries.NewDesk(fmt.Sprintf("n%d.1", i+1))}
	n.rounds = warn.NewRounds(n.desk.Suspects)
	// Nodes start one after the other, and a node's loops do too.
	start := time.Duration(i) * reportEvery / 3
	a.stage.At(nil, start, n.keepReported)
	a.stage.At(nil, start, n.look)
	return n
}

func (n *node) keepReported() {
	n.report()
	n.authority.stage.At(nil, reportEvery, n.keepReported)
}

// look looks at all who retry.
func (n *node) look() {
	changes, _ := n.rounds.Look(n.authority.stage.Real(), n.view)
	n.looked(changes)
}

func (n *node) view(read func(*fsm.Machine, bucket.Instant)) {
	read(n.authority.machine, bucket.Instant(n.authority.stage.Real()))
}

// looked says what has changed, and looks again when something will change by
// itself.
func (n *node) looked(changes []warn.Change) {
	for _, c := range changes {
		if n.authority.OnChange != nil {
			n.authority.OnChange(n.number, c)
		}
	}
	s := n.authority.stage
	n.turn++
	turn := n.turn
	s.At(nil, n.rounds.Next()-s.Real(), func() {
		if turn == n.turn {
			n.look()
		}
	})
}

// applied takes a report that has committed, and looks at whom it is about.
func (n *node) applied(report *logv1.ReportRetries) {
	n.desk.Applied(n.authority.machine, n.authority.stage.Real(), report)
	select {
	case <-n.desk.Suspects.Touched:
		n.looked(n.rounds.Glance(n.authority.stage.Real(), n.view))
	default:
	}
	n.hurry()
}

// hurry reports what should not wait for its turn.
func (n *node) hurry() {
	select {
	case <-n.desk.Counter.Due():
		n.report()
	default:
	}
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
	n.hurry()
	return ruling.Denial
}
