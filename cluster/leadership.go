package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"
	"google.golang.org/protobuf/proto"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm"
)

// announceEvery is how often a node compares its record with what is replicated.
const announceEvery = time.Second

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

// transferTries and transferPause bound how long a stopping leader tries to
// hand over: it stops anyway (R10).
const (
	transferTries = 3
	transferPause = time.Second
)

// handOver gives the leadership to another voter before the node stops, so that
// nobody has to wait for an election. ctx bounds it.
func (n *Node) handOver(ctx context.Context) {
	if voters(n.raft.GetConfiguration().Configuration()) < 2 {
		return
	}
	for range transferTries {
		if n.raft.State() != raft.Leader {
			return
		}
		done := make(chan error, 1)
		go func() { done <- n.raft.LeadershipTransfer().Error() }()
		select {
		case err := <-done:
			if err == nil {
				return
			}
			n.logger.Warn("leadership not handed over", "err", err)
		case <-ctx.Done():
			return
		}
		pause := time.NewTimer(transferPause)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return
		}
	}
}

func voters(c raft.Configuration) int {
	count := 0
	for _, s := range c.Servers {
		if s.Suffrage == raft.Voter {
			count++
		}
	}
	return count
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

// keepAnnounced keeps this node's record in the replicated state as it is, forms
// the cluster's state if nobody has, and notices when this node was removed.
func (n *Node) keepAnnounced(stop <-chan struct{}) {
	ctx, cancel := untilClosed(stop)
	defer cancel()
	ticker := time.NewTicker(announceEvery)
	defer ticker.Stop()
	refused := 0
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
			refused++
			if !n.leaderUnknown() || !n.disowned(ctx) {
				refused = 0
			}
		case <-n.announcer.wake:
		}
		if n.isRemoved() || refused >= refusalsMax {
			n.fail(errors.Join(ErrRemoved, n.identity.Remove()))
			return
		}
		if err := n.announce(ctx); err != nil && !errors.Is(err, ErrNoLeader) {
			n.logger.Debug("node record not announced", "err", err)
		}
	}
}

// isRemoved reports whether a committed configuration does without this node.
// raft itself stops only a leader that is removed; a follower would wait for
// ever (R33).
func (n *Node) isRemoved() bool {
	latest := n.raft.GetConfiguration()
	servers := latest.Configuration().Servers
	return len(servers) > 0 && latest.Index() <= n.raft.CommitIndex() && n.serving() == 0
}

// announce proposes what the replicated state lacks: the cluster's id, if this
// node leads, and this node's record.
func (n *Node) announce(ctx context.Context) error {
	var clusterID string
	var mine *logv1.NodeRecord
	n.fsm.view(func(m *fsm.Machine) {
		clusterID = m.ClusterID()
		for _, record := range m.Nodes() {
			if record.GetRaftId() == string(n.id) {
				mine = proto.CloneOf(record)
			}
		}
	})
	if clusterID == "" {
		if !n.Leads() {
			return nil
		}
		if err := n.form(ctx); err != nil {
			return err
		}
	}
	record := n.record()
	if proto.Equal(mine, record) || n.leaderUnknown() {
		return nil
	}
	op := &logv1.Operation{Kind: &logv1.Operation_SetNode{SetNode: &logv1.SetNode{Node: record}}}
	if _, err := n.Do(ctx, op, 0); err != nil {
		return fmt.Errorf("announce node: %w", err)
	}
	return nil
}

// form proposes the first operation of the cluster.
func (n *Node) form(ctx context.Context) error {
	op := &logv1.Operation{Kind: &logv1.Operation_Form{Form: &logv1.Form{
		ClusterId: n.identity.Record().ClusterID, Caps: n.config.Caps,
	}}}
	if _, err := n.Do(ctx, op, 0); err != nil {
		return fmt.Errorf("form cluster: %w", err)
	}
	return nil
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
