package cluster

import (
	"context"
	"fmt"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	peerv1 "github.com/quorlease/quorlease/api/quorlease/peer/v1"
	"github.com/quorlease/quorlease/cluster/calendar"
	"github.com/quorlease/quorlease/cluster/notice"
	"github.com/quorlease/quorlease/cluster/outcome"
	"github.com/quorlease/quorlease/cluster/probe"
)

// openProber prepares to ask the other members who is there.
func (n *Node) openProber() error {
	n.prober = probe.New(probe.Config{
		Self: n.info, Peers: n.probed, Leader: n.leaderAge, Ask: n.ask, OnChange: n.quorumChanged,
		Logger: n.logger.Named("probe"),
	})
	return nil
}

// info is what this node says of itself to its peers.
func (n *Node) info() *peerv1.PeerInfo {
	record := n.identity.Record()
	_, leader := n.raft.LeaderWithID()
	return &peerv1.PeerInfo{
		RaftId: string(n.id), Name: n.config.ID, Peer: n.advertise,
		Grpc: n.config.AdvertiseGRPC, Http: n.config.AdvertiseHTTP, Version: n.config.Version,
		ClusterId: record.ClusterID, HasState: n.hasState(), BootstrapExpect: uint32(n.config.BootstrapExpect),
		Leader: string(leader), Term: n.raft.CurrentTerm(),
		AppliedIndex: n.raft.AppliedIndex(), LastIndex: n.raft.LastIndex(),
		Known: n.known(), Reached: n.prober.View().Reached, Wall: n.config.Wall().UnixNano(),
	}
}

// clocks are what the voters' wall clocks show, by their probes.
func (n *Node) clocks() (readings []calendar.Reading, voters int) {
	for _, m := range n.roster.Applied() {
		if !m.Voter {
			continue
		}
		voters++
		if m.RaftID == string(n.id) {
			readings = append(readings, calendar.Reading{Node: n.config.ID, Wall: n.config.Wall().UnixNano()})
		} else if wall, age, ok := n.prober.Wall(m.RaftID); ok {
			readings = append(readings, calendar.Reading{Node: m.Name, Wall: wall, Age: age})
		}
	}
	return readings, voters
}

// newCalendar makes what begins calendar windows.
func (n *Node) newCalendar() *calendar.Keeper {
	return calendar.NewKeeper(calendar.Config{
		Leads: n.Leads, Clocks: n.clocks, View: n.fsm.view, Logger: n.logger.Named("calendar"),
		Do: func(ctx context.Context, op *logv1.Operation) error {
			_, err := n.Do(ctx, op, 0)
			return err
		},
		Skewed: func(s calendar.Skew) { n.events.Publish(notice.Skew(s)) },
	})
}

// hasState reports whether raft has anything it must not forget.
func (n *Node) hasState() bool { return n.raft.CurrentTerm() > 0 || n.raft.LastIndex() > 0 }

// probed are the members, or the addresses to join while there are none.
func (n *Node) probed() []probe.Peer {
	members := n.roster.Applied()
	peers := make([]probe.Peer, 0, len(members)+len(n.config.Join))
	for _, m := range members {
		peers = append(peers, probe.Peer{RaftID: m.RaftID, Addr: m.Address, Voter: m.Voter})
	}
	if len(members) == 0 {
		for _, address := range n.config.Join {
			peers = append(peers, probe.Peer{Addr: address})
		}
	}
	return peers
}

// leaderAge is the leader raft knows, and how long ago it was heard of.
func (n *Node) leaderAge() probe.Leader {
	_, id := n.raft.LeaderWithID()
	if id == n.id {
		return probe.Leader{RaftID: string(id)}
	}
	return probe.Leader{RaftID: string(id), Age: time.Since(n.raft.LastContact())}
}

// ask sends one probe.
func (n *Node) ask(ctx context.Context, address string, from *peerv1.PeerInfo) (*peerv1.PeerInfo, error) {
	client, err := n.peers.Client(address)
	if err != nil {
		return nil, err
	}
	response, err := client.Probe(ctx, &peerv1.ProbeRequest{From: from})
	if err != nil {
		return nil, fmt.Errorf("probe %s: %w", address, err)
	}
	return response.GetSelf(), nil
}

// quorumChanged publishes incidents.
func (n *Node) quorumChanged(c probe.Change) {
	if event, ok := notice.Quorum(c); ok {
		n.events.Publish(event)
	}
}

// quorum says whether operations can be decided.
func (n *Node) quorum() Quorum {
	view := n.prober.View()
	switch {
	case view.State == probe.HasLeader, view.State == probe.NoLeader && !n.leaderUnknown():
		// The view may be a moment older than raft's knowledge.
		return HasLeader
	case view.State == probe.NoLeader, view.Voters == 0:
		// Without voters the cluster is not formed yet: nobody is missing.
		return NoLeader
	default:
		return NoQuorum
	}
}

// leaderless names why there is nobody to decide.
func (n *Node) leaderless() error {
	if n.quorum() == NoQuorum {
		return ErrNoQuorum
	}
	return outcome.Leaderless(n.prober.View().Voters)
}
