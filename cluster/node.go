package cluster

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"google.golang.org/grpc"

	peerv1 "github.com/quorlease/quorlease/api/quorlease/peer/v1"
	"github.com/quorlease/quorlease/cluster/clock"
	"github.com/quorlease/quorlease/cluster/disk"
	"github.com/quorlease/quorlease/cluster/door"
	"github.com/quorlease/quorlease/cluster/events"
	"github.com/quorlease/quorlease/cluster/form"
	"github.com/quorlease/quorlease/cluster/forward"
	"github.com/quorlease/quorlease/cluster/identity"
	"github.com/quorlease/quorlease/cluster/metrics"
	"github.com/quorlease/quorlease/cluster/peers"
	"github.com/quorlease/quorlease/cluster/probe"
	"github.com/quorlease/quorlease/cluster/reads"
	"github.com/quorlease/quorlease/cluster/retries"
	"github.com/quorlease/quorlease/cluster/wire"
)

// Node is one running member of a cluster, or a node on its way to become one.
// All methods are safe for concurrent use.
type Node struct {
	config Config
	logger hclog.Logger

	// What follows is set by Open, in this order, and closed by Close.
	identity  *identity.Dir
	id        raft.ServerID
	advertise string
	stores    *disk.Stores
	watchdog  *disk.Watchdog
	space     *disk.Space
	outgoing  *wire.Outgoing
	dialer    *wire.Dialer
	listener  *wire.Listener
	transport *raft.NetworkTransport
	raft      *raft.Raft
	server    *grpc.Server

	clock     *clock.Clock
	metrics   *metrics.Set
	events    *events.Ring
	fsm       *raftFSM
	desk      *retries.Desk
	door      *door.Door
	proposer  *proposer
	forwarder *forward.Forwarder
	reads     *reads.Reads
	peers     *peers.Clients
	former    *form.Former
	prober    *probe.Prober
	announcer nudger
	// members is raft's configuration for those who ask before raft is there.
	members atomic.Pointer[raft.Raft]

	// closing is closed when Close begins, halt when raft has been told to
	// stop, done when everything has been released.
	closing, halt, done chan struct{}
	closeOnce           sync.Once
	// early are the goroutines that end with closing, loops those that end with
	// halt.
	early, loops sync.WaitGroup

	mu struct {
		sync.Mutex
		// err is why the node stopped itself; closeErr what went wrong closing.
		err, closeErr error
	}
}

// nudger wakes a loop; waking it twice is waking it once.
type nudger struct{ wake chan struct{} }

func newNudger() nudger { return nudger{make(chan struct{}, 1)} }

func (n nudger) nudge() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// closeMax bounds Close: after that the process should exit whatever hangs
// (R40). closeTransferMax is what of it a leader may spend to hand over.
const (
	closeMax         = 10 * time.Second
	closeTransferMax = 4 * time.Second
)

// Open starts a node: it takes the data directory, opens the stores, listens
// for peers, starts raft on what is stored, and then everything that needs a
// running raft. It returns before the node knows a leader; see Status. ctx
// bounds the start only. Close releases everything.
func Open(ctx context.Context, config Config) (*Node, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	n := newNode(config)
	for _, step := range []func(context.Context) error{
		n.openIdentity, n.openStores, n.openNetwork, n.openRaft, n.openProber, n.openForming, n.openMetrics, n.openServer,
	} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, n.Close())
		}
	}
	n.startLoops()
	return n, nil
}

func newNode(config Config) *Node {
	n := &Node{
		config:    config,
		logger:    config.Logger,
		events:    events.New(0, nil),
		metrics:   metrics.New(),
		announcer: newNudger(),
		closing:   make(chan struct{}),
		halt:      make(chan struct{}),
		done:      make(chan struct{}),
	}
	if n.logger == nil {
		n.logger = hclog.NewNullLogger()
	}
	n.logger = n.logger.Named("cluster").With("node", config.ID)
	n.clock = clock.New(config.Elapsed)
	n.door = door.New(config.MaxPending)
	n.proposer = newProposer(n)
	n.forwarder = forward.New(forward.Config{
		Door: n.door, Leader: n.otherLeader, Reroute: n.reroute, QueueMax: 2 * config.MaxPending,
		Client: func(address string) (peerv1.PeerClient, error) { return n.peers.Client(address) },
	})
	n.reads = reads.New(
		func() (uint64, bool) { return n.fsm.reached.Last(), n.Leads() },
		func() error { return n.raft.VerifyLeader().Error() })
	n.fsm = newRaftFSM(n.clock, n.metrics)
	n.fsm.fail = n.fail
	n.fsm.onStep = n.observe
	return n
}

func (n *Node) openIdentity(context.Context) error {
	dir, err := identity.Open(n.config.DataDir, n.config.ID)
	if err != nil {
		if errors.Is(err, identity.ErrRemoved) {
			return fmt.Errorf("%w: %w", ErrRemoved, err)
		}
		if errors.Is(err, identity.ErrUnreadable) {
			return fmt.Errorf("%w: %w", ErrProtected, err)
		}
		return err
	}
	n.identity, n.id = dir, raft.ServerID(dir.RaftID())
	n.desk = retries.NewDesk(dir.RaftID())
	n.fsm.desk = n.desk
	return nil
}

func (n *Node) openStores(context.Context) error {
	var err error
	if n.stores, err = disk.OpenStores(n.config.DataDir, n.logger.Named("snapshot")); err != nil {
		if errors.Is(err, disk.ErrCorrupt) {
			return fmt.Errorf("%w: %w", ErrProtected, err)
		}
		return err
	}
	n.fsm.snapshots = n.stores.Snapshots
	election := n.config.raftConfig(n.id, nil).ElectionTimeout
	n.watchdog = disk.Watch(disk.Config{
		Limit: disk.StallLimit(election), OnStall: n.diskStalled, OnError: n.diskFailed,
		Logger: n.logger.Named("disk"),
	})
	space := disk.SpaceConfig{Path: n.config.DataDir, OnChange: n.spaceChanged, Logger: n.logger.Named("disk")}
	if n.config.MinFreeBytes > 0 {
		space.MinFree, space.MinPercent = n.config.MinFreeBytes, -1
	}
	if n.space, err = disk.WatchSpace(space); err != nil {
		return fmt.Errorf("watch free space: %w", err)
	}
	return nil
}

// diskStalled ends the node: raft's main loop hangs in the call and would keep
// the leadership for ever (R12).
func (n *Node) diskStalled(stall *disk.StallError) {
	n.events.Publish(events.Event{Kind: events.DiskStalled, Severity: events.Critical, Text: stall.Error()})
	n.fail(fmt.Errorf("%w: %w", ErrProtected, stall))
}

// diskFailed ends the node: a store that returned an error is never asked
// again (R14).
func (n *Node) diskFailed(err error) { n.fail(fmt.Errorf("%w: %w", ErrProtected, err)) }

func (n *Node) spaceChanged(r disk.SpaceReport) {
	event := events.Event{
		Kind: events.DiskLow, Severity: events.Critical, Value: strconv.FormatUint(r.Free, 10),
		Text: fmt.Sprintf("%d bytes are free, fewer than %d", r.Free, r.Need),
	}
	if !r.Low {
		event.Severity, event.Text = events.Info, fmt.Sprintf("%d bytes are free again", r.Free)
	}
	n.events.Publish(event)
}

// openNetwork listens for peers. Nobody is let in yet: raft is not there.
func (n *Node) openNetwork(ctx context.Context) error {
	var err error
	n.listener, err = wire.Listen(ctx, wire.Config{
		Network: n.config.Network, Addr: n.config.Peer, Self: n.self, Admit: n.admitPeer,
		Logger: n.logger.Named("wire"),
	})
	if err != nil {
		return err
	}
	n.advertise = n.config.advertised(n.listener.Addr())
	n.outgoing = wire.NewOutgoing(n.config.Network)
	n.dialer = wire.NewDialer(wire.DialerConfig{
		Network: n.outgoing.Network(), Self: n.self, Expect: n.expectedAt, Logger: n.logger.Named("wire"),
	})
	n.peers = peers.New(n.dialer.DialGRPC)
	return nil
}

func (n *Node) openRaft(context.Context) error {
	logger := n.logger.Named("raft")
	layer := &streamLayer{Listener: n.listener.Raft(), dialer: n.dialer, advertise: address(n.advertise)}
	var err error
	if n.transport, err = newTransport(layer, logger); err != nil {
		return err
	}
	// The cache sits on top, so that what followers read from it can't stall.
	logs, err := raft.NewLogCache(disk.LogCacheEntries, n.watchdog.LogStore(n.stores.Log))
	if err != nil {
		return fmt.Errorf("open log cache: %w", err)
	}
	n.raft, err = raft.NewRaft(n.config.raftConfig(n.id, logger), n.fsm, logs,
		n.watchdog.StableStore(n.stores.Log), n.stores.Snapshots, n.transport)
	if err != nil {
		return fmt.Errorf("%w: start raft: %w", ErrProtected, errors.Join(n.fsm.haltedBy(), err))
	}
	n.members.Store(n.raft)
	return nil
}

func (n *Node) openMetrics(context.Context) error {
	n.addGauges()
	return n.metrics.Register(n.config.Registerer)
}

// startLoops starts what needs a running raft.
func (n *Node) startLoops() {
	n.loops.Go(func() { n.door.Sweep(n.halt) })
	n.loops.Go(func() { n.proposer.run(n.halt) })
	n.loops.Go(func() { n.watchLeadership(n.halt) })
	n.prober.Start()
	n.early.Go(func() { n.formOrFind(n.closing) })
	n.early.Go(func() { n.reads.Run(n.closing) })
	n.early.Go(func() { n.watchLeader(n.closing) })
	n.early.Go(func() { n.keepAnnounced(n.closing) })
	n.early.Go(func() { n.keepReported(n.closing) })
	n.loops.Go(func() { n.keepSnapshots(n.halt) })
}

// fail stops the node because going on is not safe. The first reason stays.
func (n *Node) fail(err error) {
	n.mu.Lock()
	first := n.mu.err == nil
	if first {
		n.mu.err = err
	}
	n.mu.Unlock()
	if !first {
		return
	}
	n.logger.Error("node stops itself", "err", err)
	go func() { _ = n.Close() }()
}

// Done is closed when the node has stopped, by Close or by itself.
func (n *Node) Done() <-chan struct{} { return n.done }

// Err says why the node stopped itself: it wraps ErrProtected or ErrRemoved.
// Nil while it runs, and after a Close from outside.
func (n *Node) Err() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.mu.err
}

// Close stops the node within ten seconds and releases everything. A leader
// hands over first. Operations that were not proposed are answered ErrClosed,
// those that were and have no result ErrOutcomeUnknown as well. It is
// idempotent; later calls wait for the first.
func (n *Node) Close() error {
	n.closeOnce.Do(func() {
		released := make(chan struct{})
		go func() {
			defer close(released)
			n.release()
		}()
		timer := time.NewTimer(closeMax)
		defer timer.Stop()
		select {
		case <-released:
		case <-timer.C:
			n.noteClose(fmt.Errorf("close node: not finished within %s", closeMax))
		}
		n.door.Abandon()
		close(n.done)
	})
	<-n.done
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.mu.closeErr
}

func (n *Node) noteClose(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.closeErr = errors.Join(n.mu.closeErr, err)
}

// release stops what Open started, in this order:
//
//  1. The door: nobody comes in, what waits is answered.
//  2. The leadership, where a healthy leader can hand it over.
//  3. What asks raft or other nodes: reads, announcements, the stream to the
//     leader. raft has to be alive to answer them.
//  4. raft is told to stop; its transport and every connection are closed before
//     waiting for it, because a silent peer would hold it (R40).
//  5. The goroutines that waited for raft.
//  6. The stores, and last the lock on the data directory.
func (n *Node) release() {
	n.door.Close(ErrClosed)
	if n.raft != nil && n.Err() == nil {
		ctx, cancel := context.WithTimeout(context.Background(), closeTransferMax)
		n.handOver(ctx)
		cancel()
	}
	close(n.closing)
	if n.prober != nil {
		n.prober.Close()
	}
	n.forwarder.Close()
	n.early.Wait()
	n.stopRaft()
	n.metrics.Unregister()
	if n.space != nil {
		n.space.Close()
	}
	if n.watchdog != nil {
		n.watchdog.Close()
	}
	n.events.Close()
	if n.stores != nil {
		n.noteClose(wrap("close log store", n.stores.Close()))
	}
	if n.identity != nil {
		n.noteClose(wrap("release data directory", n.identity.Close()))
	}
}

// stragglers is how long to wait for goroutines that wait for raft after raft
// has gone: it may have left one without an answer for good (R1).
const stragglers = 200 * time.Millisecond

func (n *Node) stopRaft() {
	close(n.halt)
	var stopped raft.Future
	if n.raft != nil {
		stopped = n.raft.Shutdown()
	}
	if n.transport != nil {
		n.transport.CloseStreams()
		n.noteClose(wrap("close transport", n.transport.Close()))
	}
	if n.outgoing != nil {
		n.outgoing.Close()
	}
	if n.server != nil {
		n.server.Stop()
	}
	if n.peers != nil {
		n.noteClose(wrap("close peer connections", n.peers.Close()))
	}
	if n.listener != nil {
		n.noteClose(wrap("close peer listener", n.listener.Close()))
	}
	if stopped != nil {
		n.noteClose(wrap("stop raft", stopped.Error()))
	}
	joined := make(chan struct{})
	go func() {
		defer close(joined)
		n.loops.Wait()
	}()
	timer := time.NewTimer(stragglers)
	defer timer.Stop()
	select {
	case <-joined:
	case <-timer.C:
		n.logger.Warn("raft left a proposal without an answer")
	}
}

// wrap adds what was being done, to an error only.
func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
