package form

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	peerv1 "github.com/quorlease/quorlease/api/quorlease/peer/v1"
	"github.com/quorlease/quorlease/cluster/identity"
)

var (
	errCrash = errors.New("crashed")
	errDown  = errors.New("connection refused")
)

// world is nodes that reach one another through it. Its mutex stands for the
// instant at which a message arrives.
type world struct {
	mu    sync.Mutex
	nodes []*simulated
	// silence is how often a member looks in vain for the leader's first word.
	silence int
	// drawn counts the cluster ids drawn.
	drawn int
	// clusters are those that were bootstrapped, with their members.
	made     sync.Mutex
	clusters map[string][]identity.Member
	// crash says whether the node dies at a step of its own that it names.
	crash func(n *simulated, step string) bool
}

// simulated is one node: a disk that survives, and a process that may not.
type simulated struct {
	world *world
	addr  string
	join  []string
	// expect is --bootstrap-expect.
	expect int

	// The disk. The mutex stands for the one of identity.Dir.
	disk     sync.Mutex
	record   identity.Record
	hasState bool
	// asked is how often it looked whether the leader has spoken.
	asked int

	// The process; nil while it is down.
	former *Former
	done   bool
}

func newWorld(count int) *world {
	w := &world{clusters: make(map[string][]identity.Member), crash: func(*simulated, string) bool { return false }}
	var all []string
	for i := range count {
		all = append(all, fmt.Sprintf("n%d:7201", i+1))
	}
	for i, addr := range all {
		n := &simulated{world: w, addr: addr, join: all, expect: count}
		n.record = identity.Record{Name: fmt.Sprintf("n%d", i+1), Incarnation: fmt.Sprintf("%08x", i+1)}
		if i%2 == 1 {
			// Own included or not makes no difference.
			n.join = slices.Delete(slices.Clone(all), i, i+1)
		}
		w.nodes = append(w.nodes, n)
	}
	return w
}

// start starts the node's process with what is on its disk.
func (n *simulated) start() {
	f, err := New(Config{
		Identity: (*memory)(n), Peer: n.addr, HasState: n.stateSeen, Expect: n.expect, Join: n.join,
		Probe: n.probe, Promise: n.promise, Bootstrap: n.bootstrap,
		Draw: func() string {
			n.world.drawn++
			return fmt.Sprintf("%032x", n.world.drawn)
		},
	})
	if err != nil {
		panic(err)
	}
	n.former, n.done = f, false
}

func (n *simulated) stop() { n.former = nil }

// dies asks whether the node crashes here.
func (n *simulated) dies(step string) bool {
	if n.former != nil && n.world.crash(n, step) {
		n.stop()
	}
	return n.former == nil
}

func (w *world) at(addr string) *simulated {
	for _, n := range w.nodes {
		if n.addr == addr && n.former != nil {
			return n
		}
	}
	return nil
}

func (w *world) membersOf(clusterID string) []identity.Member {
	w.made.Lock()
	defer w.made.Unlock()
	return w.clusters[clusterID]
}

// info is what the node answers to a probe.
func (n *simulated) info() *peerv1.PeerInfo {
	record := (*memory)(n).Record()
	p := &peerv1.PeerInfo{
		RaftId: record.RaftID(), Name: record.Name, Peer: n.addr, BootstrapExpect: uint32(n.expect),
		ClusterId: record.ClusterID, HasState: n.stateSeen(), Known: n.former.Known(),
	}
	if p.HasState {
		p.Known = nil
		for _, m := range n.world.membersOf(record.ClusterID) {
			p.Known = append(p.Known, m.RaftID)
		}
	}
	return p
}

func (n *simulated) probe(_ context.Context, addr string) (*peerv1.PeerInfo, error) {
	n.world.mu.Lock()
	defer n.world.mu.Unlock()
	to := n.world.at(addr)
	if n.former == nil || to == nil {
		return nil, errDown
	}
	return to.info(), nil
}

func (n *simulated) promise(
	_ context.Context, addr string, req *peerv1.PromiseRequest,
) (*peerv1.PromiseResponse, error) {
	n.world.mu.Lock()
	defer n.world.mu.Unlock()
	if n.dies("before a promise is asked for") {
		return nil, errCrash
	}
	to := n.world.at(addr)
	if to == nil {
		return nil, errDown
	}
	resp := to.former.Promise(req)
	if to.dies("before a promise is answered") {
		return nil, errDown
	}
	if n.dies("after a promise was answered") {
		return nil, errCrash
	}
	return resp, nil
}

func (n *simulated) bootstrap(_ context.Context, clusterID string, members []identity.Member) error {
	n.world.mu.Lock()
	defer n.world.mu.Unlock()
	if n.dies("before bootstrap") {
		return errCrash
	}
	n.world.made.Lock()
	n.world.clusters[clusterID] = members
	n.world.made.Unlock()
	n.disk.Lock()
	n.hasState = true
	n.disk.Unlock()
	if n.dies("after bootstrap") {
		return errCrash
	}
	return nil
}

// memory is a node's disk as an Identity. Writes that the node itself starts
// may be its last, before or after they are durable.
type memory simulated

func (m *memory) Record() identity.Record {
	m.disk.Lock()
	defer m.disk.Unlock()
	return m.record
}

func (m *memory) Promise(clusterID string, members []identity.Member) error {
	if err := identity.CheckMembers(members, m.record.RaftID()); err != nil {
		return err
	}
	if m.record.ClusterID == clusterID && slices.Equal(m.record.Members, members) {
		return nil
	}
	if m.record.ClusterID != "" {
		return identity.ErrOtherCluster
	}
	return m.write("promise", func(r *identity.Record) { r.ClusterID, r.Members = clusterID, members })
}

func (m *memory) Join(clusterID string) error { return m.bind("join", clusterID, false) }

func (m *memory) Form(clusterID string) error { return m.bind("form", clusterID, true) }

func (m *memory) bind(step, clusterID string, formed bool) error {
	if m.record.ClusterID != "" && m.record.ClusterID != clusterID {
		return identity.ErrOtherCluster
	}
	return m.write(step, func(r *identity.Record) { r.ClusterID, r.Formed = clusterID, r.Formed || formed })
}

func (m *memory) write(step string, change func(*identity.Record)) error {
	n := (*simulated)(m)
	if n.dies("before write of " + step) {
		return errCrash
	}
	m.disk.Lock()
	change(&m.record)
	m.disk.Unlock()
	if n.dies("after write of " + step) {
		return errCrash
	}
	return nil
}

// round lets a node do one round, if it is up.
func (w *world) round(n *simulated) error {
	if n.former == nil || n.done {
		return nil
	}
	_, done, err := n.former.round(context.Background())
	if errors.Is(err, ErrRefused) {
		return err
	}
	if err != nil {
		// A disk that failed: the process ends.
		n.stop()
	}
	n.done = done && n.former != nil
	return nil
}

// stateSeen is what the node finds of Raft: a member that is up hears from the
// leader sooner or later.
func (n *simulated) stateSeen() bool {
	exists := n.world.membersOf((*memory)(n).Record().ClusterID) != nil
	n.disk.Lock()
	defer n.disk.Unlock()
	if !n.hasState && exists {
		n.asked++
		n.hasState = n.asked > n.world.silence
	}
	return n.hasState
}

// check finds what must never be: two clusters that share a node, or a cluster
// with a member that has not promised.
func (w *world) check() error {
	if len(w.clusters) > 1 {
		return fmt.Errorf("%d clusters of one set of nodes: %v", len(w.clusters), w.clusters)
	}
	for id, members := range w.clusters {
		for _, m := range members {
			for _, n := range w.nodes {
				if n.record.RaftID() == m.RaftID && n.record.ClusterID != id {
					return fmt.Errorf("%s is a member of %s and has promised %q", m.RaftID, id, n.record.ClusterID)
				}
			}
		}
	}
	return nil
}
