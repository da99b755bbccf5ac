package cluster

import (
	"time"

	"github.com/hashicorp/raft"
)

// watchLeadership follows raft until stop is closed. raft's own channel is used
// because it keeps only the latest word and never blocks raft (R9); so two
// words of having won can come in a row, with a loss between them that nobody
// saw. A refused proposal is a reason to look too.
func (n *Node) watchLeadership(stop <-chan struct{}) {
	for {
		var leads bool
		select {
		case <-stop:
			n.lose()
			return
		case leads = <-n.raft.LeaderCh():
		case <-n.doubt.wake:
			leads = n.raft.State() == raft.Leader
		}
		n.lose()
		if leads {
			n.gain(stop)
		}
	}
}

// lose stops proposing and answers what waits.
func (n *Node) lose() {
	n.clock.Follow()
	n.proposer.drop()
	n.waiting.Drop()
	n.metrics.Leads(false)
}

const (
	// gainTries and gainPause bound how long a leader tries to take up its
	// leadership: while it is being transferred raft refuses everything, and a
	// transfer can fail.
	gainTries = 50
	gainPause = 100 * time.Millisecond
)

// gain serves as the leader, once everything that earlier leaders committed has
// been applied here (R7). If that can't be had the leadership is given away:
// raft would take this node for a leader that answers nobody.
func (n *Node) gain(stop <-chan struct{}) {
	pause := time.NewTicker(gainPause)
	defer pause.Stop()
	for range gainTries {
		term := n.raft.CurrentTerm()
		// It waits until everything that was committed before has been applied here, or
		// the leadership is lost.
		err := n.raft.Barrier(enqueueMax).Error()
		if n.raft.State() != raft.Leader {
			// Another word from raft is on its way.
			return
		}
		if err == nil && n.raft.CurrentTerm() == term {
			n.serve(term)
			return
		}
		n.logger.Debug("leadership not taken up", "term", term, "err", err)
		select {
		case <-stop:
			return
		case <-pause.C:
		}
	}
	n.logger.Warn("leadership given away: it could not be taken up")
	n.giveAway()
}

// serve lets operations in.
func (n *Node) serve(term uint64) {
	n.clock.Lead()
	n.proposer.serve(term)
	n.waiting.Lead()
	n.metrics.Leads(true)
	n.logger.Info("leadership gained", "term", term)
	n.announcer.nudge()
}

// giveAway hands the leadership over if this node still has it.
func (n *Node) giveAway() {
	if n.raft.State() != raft.Leader {
		return
	}
	if err := n.raft.LeadershipTransfer().Error(); err != nil {
		n.logger.Warn("leadership not given away", "err", err)
	}
	// Where it stays here after all, it has to be taken up.
	n.doubt.nudge()
}

// watchLeader tells the forwarder and the events which node leads.
func (n *Node) watchLeader(stop <-chan struct{}) {
	// Buffered and not blocking: raft drops what finds no room, and the newest
	// leader can be asked for at any time (R9).
	seen := make(chan raft.Observation, 16)
	observer := raft.NewObserver(seen, false, func(o *raft.Observation) bool {
		_, ok := o.Data.(raft.LeaderObservation)
		return ok
	})
	n.raft.RegisterObserver(observer)
	defer n.raft.DeregisterObserver(observer)
	var last raft.ServerID
	for {
		// The first look is for a leader that was there before anybody observed.
		if _, id := n.raft.LeaderWithID(); id != "" && id != last {
			last = id
			n.forwarder.LeaderChanged(string(id))
			n.announcer.nudge()
			n.leaderEvent(id)
		}
		select {
		case <-stop:
			return
		case <-seen:
		}
	}
}

func (n *Node) leaderUnknown() bool {
	_, id := n.raft.LeaderWithID()
	return id == ""
}

// otherLeader is the leader that raft knows, empty where it knows none but this
// node.
func (n *Node) otherLeader() (id, address string) {
	leaderAddress, leader := n.raft.LeaderWithID()
	if leader == n.id {
		return "", ""
	}
	return string(leader), string(leaderAddress)
}
