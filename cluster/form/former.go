package form

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	peerv1 "github.com/quorlease/quorlease/api/quorlease/peer/v1"
	"github.com/quorlease/quorlease/cluster/identity"
)

// Identity is what is kept on this node's disk; *identity.Dir is one. Every
// method that changes it returns after the change is durable.
type Identity interface {
	Record() identity.Record
	Promise(clusterID string, members []identity.Member) error
	Join(clusterID string) error
	Form(clusterID string) error
}

// Config configures a Former.
type Config struct {
	// Identity is this node's. Required.
	Identity Identity
	// Peer is this node's advertised peer address. Required.
	Peer string
	// HasState: Raft has a log, a term or a snapshot in the data directory. It
	// becomes true while Run runs, at the latest when the leader speaks to this
	// node. Required.
	HasState func() bool
	// Expect is how many nodes form the cluster, 0 where this node only joins.
	Expect int
	// Learner: this node forms nothing and waits until it is added to a cluster.
	Learner bool
	// Join are the peer addresses to ask, this node's own among them or not.
	Join []string
	// Probe asks one address who is there. Required where Join is not empty.
	Probe func(ctx context.Context, addr string) (*peerv1.PeerInfo, error)
	// Promise asks one address to promise. Required where Join is not empty.
	Promise func(ctx context.Context, addr string, req *peerv1.PromiseRequest) (*peerv1.PromiseResponse, error)
	// Bootstrap writes the first configuration to Raft's log. It is asked once
	// all members have promised; where it was already done it returns nil.
	// Required.
	Bootstrap func(ctx context.Context, clusterID string, members []identity.Member) error
	// Draw draws a cluster id. Default identity.NewClusterID.
	Draw func() string
	// Interval is the pause between two rounds. Default 250 ms.
	Interval time.Duration
	// Timeout bounds one question. Default 1 s.
	Timeout time.Duration
	// Logger hears what is waited for whenever that changes. Nil: nobody does.
	Logger hclog.Logger
}

// ErrRefused: the node can't form or join a cluster as it was started.
var ErrRefused = errors.New("can't join")

// Outcome is the cluster that this node belongs to.
type Outcome struct {
	ClusterID string
	// Bootstrapped: this node did it, just now.
	Bootstrapped bool
}

// Former forms or finds this node's cluster. Run has one caller; the rest is
// safe for concurrent use, before, during and after Run.
type Former struct {
	config Config

	mu    sync.Mutex
	known []string
	// said is the last reason to wait that was logged.
	said string
}

// New returns a former, or says what the operator left out.
func New(c Config) (*Former, error) {
	r := c.Identity.Record()
	if r.ClusterID == "" && !c.HasState() && c.Expect != 1 && len(c.Join) == 0 {
		return nil, fmt.Errorf("node %s belongs to no cluster: name its peers with --join, "+
			"or start a cluster of one with --bootstrap-expect 1 (it is %d)", r.Name, c.Expect)
	}
	if c.Draw == nil {
		c.Draw = identity.NewClusterID
	}
	if c.Interval <= 0 {
		c.Interval = 250 * time.Millisecond
	}
	if c.Timeout <= 0 {
		c.Timeout = time.Second
	}
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	return &Former{config: c, known: []string{r.RaftID()}}, nil
}

// Known are the Raft ids that the last round found, this node's included: what
// a forming node answers in PeerInfo.known.
func (f *Former) Known() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.known)
}

// Run asks and acts until this node belongs to a cluster and Raft has state of
// it, which is then noted on disk: a directory that says so and has none has
// lost it. An error
// that wraps ErrRefused needs a person; one of the disk means that the process
// has to stop; both leave what was promised as it is.
func (f *Former) Run(ctx context.Context) (Outcome, error) {
	for {
		outcome, done, err := f.round(ctx)
		if done || err != nil {
			return outcome, err
		}
		select {
		case <-ctx.Done():
			return Outcome{}, ctx.Err()
		case <-time.After(f.config.Interval):
		}
	}
}

// round asks everybody once, decides and acts.
func (f *Former) round(ctx context.Context) (o Outcome, done bool, err error) {
	me := self{
		record: f.config.Identity.Record(), peer: f.config.Peer,
		hasState: f.config.HasState(), expect: f.config.Expect, learner: f.config.Learner,
	}
	var seen []*peerv1.PeerInfo
	if !me.hasState {
		seen = f.ask(ctx, me.record.RaftID())
		// A promise may have been given meanwhile.
		me.record = f.config.Identity.Record()
	}
	switch d := decide(me, seen); d.action {
	case adopt:
		return f.adopt(d.clusterID, me.hasState)
	case refuse:
		return Outcome{}, false, fmt.Errorf("%w: %s", ErrRefused, d.reason)
	case bootstrap:
		return f.bootstrap(ctx, d)
	default:
		f.say(d.reason)
		return Outcome{}, false, nil
	}
}

// adopt binds the node to its cluster, and is done when Raft has state.
func (f *Former) adopt(clusterID string, hasState bool) (Outcome, bool, error) {
	bind := f.config.Identity.Join
	if hasState {
		bind = f.config.Identity.Form
	}
	if err := bind(clusterID); err != nil {
		return Outcome{}, false, fmt.Errorf("adopt cluster %s: %w", clusterID, err)
	}
	if !hasState {
		f.say(fmt.Sprintf("the leader of cluster %s has yet to speak to this node", clusterID))
	}
	return Outcome{ClusterID: clusterID}, hasState, nil
}

// ask asks all addresses at once and returns the answers of others, each Raft
// id once, in the order of the addresses.
func (f *Former) ask(ctx context.Context, own string) []*peerv1.PeerInfo {
	ctx, cancel := context.WithTimeout(ctx, f.config.Timeout)
	defer cancel()
	answers := make([]*peerv1.PeerInfo, len(f.config.Join))
	var asking sync.WaitGroup
	for i, addr := range f.config.Join {
		if addr == f.config.Peer {
			continue
		}
		asking.Go(func() {
			info, err := f.config.Probe(ctx, addr)
			if err == nil {
				answers[i] = info
			}
		})
	}
	asking.Wait()
	known := []string{own}
	var seen []*peerv1.PeerInfo
	for _, a := range answers {
		// What is no node of ours, whoever sent it, must not stop this one.
		if identity.CheckRaftID(a.GetRaftId()) != nil || slices.Contains(known, a.GetRaftId()) {
			continue
		}
		known = append(known, a.GetRaftId())
		seen = append(seen, a)
	}
	f.mu.Lock()
	f.known = known
	f.mu.Unlock()
	return seen
}

// say logs what is waited for, when it is something else than before.
func (f *Former) say(reason string) {
	f.mu.Lock()
	changed := f.said != reason
	f.said = reason
	f.mu.Unlock()
	if changed {
		f.config.Logger.Info("waiting for a cluster", "reason", reason)
	}
}
