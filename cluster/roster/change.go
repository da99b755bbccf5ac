package roster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	peerv1 "github.com/quorlease/quorlease/api/quorlease/peer/v1"
	"github.com/quorlease/quorlease/cluster/identity"
	"github.com/quorlease/quorlease/cluster/membership"
	"github.com/quorlease/quorlease/cluster/outcome"
	"github.com/quorlease/quorlease/cluster/probe"
	"github.com/quorlease/quorlease/cluster/progress"
)

const (
	// enqueueMax is how long raft may take to begin a change. It waits while an
	// earlier one has not committed.
	enqueueMax = 5 * time.Second
	// candidateMax is how long a node that is to be added has to say who it is.
	candidateMax = time.Second
	// transferTries and transferPause bound how long a leader tries to hand over:
	// raft gives up after one election timeout, and refuses everything meanwhile (R10).
	transferTries = 3
	transferPause = time.Second
)

// ChangerConfig says how a Changer reaches the rest of its node. All of it is
// required.
type ChangerConfig struct {
	Roster *Roster
	// Self is this node's Raft id.
	Self string
	// Leads says that this node serves as the leader, Leader which other node does:
	// empty where none is known.
	Leads  func() bool
	Leader func() (raftID, address string)
	// Leaderless names why there is nobody to decide.
	Leaderless func() error
	// Member is what probes say of a member.
	Member func(raftID string) (probe.Member, bool)
	// Outside asks a node who it is, as one that belongs to no cluster. Client is that of a
	// peer address.
	Outside func(ctx context.Context, address string) (*peerv1.PeerInfo, error)
	Client  func(address string) (peerv1.PeerClient, error)
	// Cluster is the id of this node's cluster.
	Cluster func() string
	// Classify sorts what raft says of a change into ErrNotLeader and ErrUnknown of
	// package outcome.
	Classify func(error) error
	// Changed is called after each change.
	Changed func()
	Logger  hclog.Logger
}

// Changer changes who is a member. It is safe for concurrent use.
type Changer struct {
	config ChangerConfig
	// busy is held while a change is decided and made here.
	busy sync.Mutex
}

// NewChanger returns a changer.
func NewChanger(c ChangerConfig) *Changer { return &Changer{config: c} }

// Here makes one step of a change if this node leads, for another node or this one.
func (c *Changer) Here(ctx context.Context, request *peerv1.ChangeRequest) *peerv1.ChangeResponse {
	response, err := c.here(ctx, request)
	if err == nil {
		return response
	}
	for _, row := range causes {
		if errors.Is(err, row.err) {
			return &peerv1.ChangeResponse{Cause: row.cause, Reason: reasonOf(err, row.err)}
		}
	}
	return &peerv1.ChangeResponse{Failure: outcome.FailureOf(err)}
}

func (c *Changer) here(ctx context.Context, request *peerv1.ChangeRequest) (*peerv1.ChangeResponse, error) {
	if !c.config.Leads() {
		return nil, outcome.ErrNotLeader
	}
	if !c.busy.TryLock() {
		return nil, membership.ErrBusy
	}
	defer c.busy.Unlock()
	r := membership.Request{Verb: verbs[request.GetVerb()], Name: request.GetName(), Address: request.GetPeer()}
	if r.Verb == membership.Add {
		var err error
		if r.Found, err = c.candidate(ctx, r); err != nil {
			return nil, err
		}
	}
	view, index := c.view()
	step, err := membership.Decide(view, r)
	if err != nil {
		return nil, err
	}
	response := &peerv1.ChangeResponse{
		Changed: step.Action != membership.Nothing,
		Moved:   step.Action == membership.HandOver && (r.Verb != membership.Transfer || r.Name != ""),
	}
	if err := c.act(ctx, step, index); err != nil {
		return nil, err
	}
	return response, nil
}

// candidate is the node that answers at an address. It must run before it is added:
// only it knows its incarnation.
func (c *Changer) candidate(ctx context.Context, r membership.Request) (membership.Candidate, error) {
	ctx, cancel := context.WithTimeout(ctx, candidateMax)
	defer cancel()
	info, err := c.config.Outside(ctx, r.Address)
	if err != nil {
		return membership.Candidate{}, fmt.Errorf("%w: %s has to be started with --learner first: %w",
			membership.ErrNotReady, r.Name, err)
	}
	if id := info.GetRaftId(); identity.CheckRaftID(id) != nil || identity.NameOf(id) != info.GetName() {
		// By another's id it would take that one's place.
		return membership.Candidate{}, fmt.Errorf("%w: the node at %s is called %.100q and has the id %.100q",
			membership.ErrRefused, r.Address, info.GetName(), id)
	}
	if id := info.GetClusterId(); id != "" && id != c.config.Cluster() {
		return membership.Candidate{}, fmt.Errorf("%w: the node at %s belongs to another cluster, %s",
			membership.ErrRefused, r.Address, id)
	}
	return membership.Candidate{
		RaftID: info.GetRaftId(), Name: info.GetName(), Address: info.GetPeer(),
		WasMember: info.GetHasState() && slices.Contains(info.GetKnown(), info.GetRaftId()),
	}, nil
}

// view is the cluster as the decision wants it, and the index of the configuration
// that it is about. A configuration that is not applied here may not have committed.
func (c *Changer) view() (membership.View, uint64) {
	latest := c.config.Roster.Latest()
	certain, index := c.config.Roster.certain()
	view := membership.View{Leader: c.config.Self, Pending: index == 0 || !slices.Equal(latest, certain)}
	for _, m := range latest {
		seen := membership.Member{RaftID: m.RaftID, Name: m.Name, Address: m.Address, Voter: m.Voter}
		if known, ok := c.config.Member(m.RaftID); ok {
			seen.Answers, seen.Lag, seen.Steady = known.Answers, known.Lag, known.Steady
		}
		view.Members = append(view.Members, seen)
	}
	return view, index
}

// act carries a step out. Only if no other change has been made since index was looked
// up does raft make it.
func (c *Changer) act(ctx context.Context, s membership.Step, index uint64) error {
	library := c.config.Roster.raft.Load()
	id, address := raft.ServerID(s.RaftID), raft.ServerAddress(s.Address)
	var future raft.IndexFuture
	switch s.Action {
	case membership.Nothing:
		return nil
	case membership.HandOver:
		return c.handOver(ctx, s)
	case membership.AddLearner, membership.Move:
		// Of a voter it changes the address only.
		future = library.AddNonvoter(id, address, index, enqueueMax)
	case membership.GiveVote:
		future = library.AddVoter(id, address, index, enqueueMax)
	case membership.TakeVote:
		future = library.DemoteVoter(id, index, enqueueMax)
	case membership.TakeOut:
		future = library.RemoveServer(id, index, enqueueMax)
	}
	if err := wait(ctx, future); err != nil {
		c.config.Logger.Warn("members not changed", "node", s.RaftID, "err", err)
		if ctx.Err() != nil {
			return outcome.ErrDeadlineProposed
		}
		return c.config.Classify(err)
	}
	c.config.Logger.Info("members changed", "node", s.RaftID, "action", s.Action.String(), "index", future.Index())
	c.config.Changed()
	return nil
}

// wait waits for raft, which may answer late (R1), or for ctx.
func wait(ctx context.Context, f raft.Future) error {
	done := make(chan error, 1)
	go func() { done <- f.Error() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *Changer) handOver(ctx context.Context, to membership.Step) error {
	library := c.config.Roster.raft.Load()
	begin := func() raft.Future {
		return library.LeadershipTransferToServer(raft.ServerID(to.RaftID), raft.ServerAddress(to.Address))
	}
	if err := c.transfer(ctx, begin); err != nil {
		return fmt.Errorf("%w: %s has not taken the leadership over: %w", membership.ErrNotReady, to.RaftID, err)
	}
	c.config.Logger.Info("leadership handed over", "node", to.RaftID)
	return nil
}

// Leave gives the leadership, if this node has it, to whichever voter is nearest, so
// that nobody has to wait for an election when the node stops. ctx bounds it.
func (c *Changer) Leave(ctx context.Context) {
	library := c.config.Roster.raft.Load()
	if voters, _ := c.config.Roster.Count(); voters < 2 || library == nil {
		return
	}
	if err := c.transfer(ctx, library.LeadershipTransfer); err != nil {
		c.config.Logger.Warn("leadership not handed over", "err", err)
	}
}

// transfer tries until this node does not lead.
func (c *Changer) transfer(ctx context.Context, begin func() raft.Future) (err error) {
	for try := range transferTries {
		if c.config.Roster.raft.Load().State() != raft.Leader {
			return nil
		}
		if try > 0 {
			progress.Pause(ctx, transferPause)
		}
		if err = wait(ctx, begin()); err == nil || ctx.Err() != nil {
			return err
		}
	}
	return err
}
