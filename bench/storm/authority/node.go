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

// How often a node reports what it counted and looks at who retries, where
// nothing makes it do so sooner, and the least time between two looks: as in
// cluster/budget.
const (
	reportEvery = time.Second
	lookEvery   = time.Second
	lookPause   = 100 * time.Millisecond
)

// node is one node's part in the retry budgets.
type node struct {
	authority *Authority
	number    int
	desk      *retries.Desk
	rounds    *warn.Rounds
	// looked is when it looked last, hurried that it will look before its turn.
	looked  time.Duration
	hurried bool
}

func newNode(a *Authority, i int) *node {
	n := &node{authority: a, number: i, desk: retries.NewDesk(fmt.Sprintf("n%d.1", i+1))}
	n.rounds = warn.NewRounds(n.desk.Suspects)
	// Nodes start one after the other, and a node's loops do too.
	start := time.Duration(i) * reportEvery / 3
	a.stage.At(nil, start, n.keepReported)
	a.stage.At(nil, start+reportEvery/10, n.keepLooking)
	return n
}

func (n *node) keepReported() {
	n.report()
	n.authority.stage.At(nil, reportEvery, n.keepReported)
}

func (n *node) keepLooking() {
	n.look()
	n.authority.stage.At(nil, lookEvery, n.keepLooking)
}

// look says what has changed about clients that retry.
func (n *node) look() {
	n.hurried = false
	n.looked = n.authority.stage.Real()
	changes, _ := n.rounds.Look(n.looked, func(read func(*fsm.Machine, bucket.Instant)) {
		read(n.authority.machine, bucket.Instant(n.looked))
	})
	for _, c := range changes {
		if n.authority.OnChange != nil {
			n.authority.OnChange(n.number, c)
		}
	}
}

// hurry looks soon, if somebody asks for it.
func (n *node) hurry() {
	select {
	case <-n.desk.Suspects.Hurry:
	default:
		return
	}
	if n.hurried {
		return
	}
	n.hurried = true
	s := n.authority.stage
	s.At(nil, n.looked+lookPause-s.Real(), n.look)
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
	n.hurry()
	return ruling.Denial
}
