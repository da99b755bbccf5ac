package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"google.golang.org/grpc"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	peerv1 "github.com/quorlease/quorlease/api/quorlease/peer/v1"
	"github.com/quorlease/quorlease/cluster/audit"
	"github.com/quorlease/quorlease/cluster/budget"
	"github.com/quorlease/quorlease/cluster/calendar"
	"github.com/quorlease/quorlease/cluster/calm"
	"github.com/quorlease/quorlease/cluster/clock"
	"github.com/quorlease/quorlease/cluster/config"
	"github.com/quorlease/quorlease/cluster/crash"
	"github.com/quorlease/quorlease/cluster/disk"
	"github.com/quorlease/quorlease/cluster/door"
	"github.com/quorlease/quorlease/cluster/events"
	"github.com/quorlease/quorlease/cluster/form"
	"github.com/quorlease/quorlease/cluster/forward"
	"github.com/quorlease/quorlease/cluster/grant"
	"github.com/quorlease/quorlease/cluster/identity"
	"github.com/quorlease/quorlease/cluster/metrics"
	"github.com/quorlease/quorlease/cluster/notice"
	"github.com/quorlease/quorlease/cluster/overview"
	"github.com/quorlease/quorlease/cluster/peers"
	"github.com/quorlease/quorlease/cluster/probe"
	"github.com/quorlease/quorlease/cluster/reads"
	"github.com/quorlease/quorlease/cluster/retries"
	"github.com/quorlease/quorlease/cluster/roster"
	"github.com/quorlease/quorlease/cluster/usage"
	"github.com/quorlease/quorlease/cluster/waiting"
	"github.com/quorlease/quorlease/cluster/wire"
)

// Config says how to run a node.
type Config = config.Config

// DefaultConfig returns the defaults. ID, DataDir and Peer are left to the
// caller.
func DefaultConfig() Config { return config.Default() }

// Node is one running member of a cluster, or a node on its way to become one.
// All methods are safe for concurrent use.
type Node struct {
	config Config
	logger hclog.Logger

	// What follows is set by Open, in this order, and closed by Close. bound is
	// listener's once there is one.
	bound     net.Listener
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
	audit     *audit.Log
	usage     *usage.Book
	events    *events.Ring
	overview  *overview.Book
	fsm       *raftFSM
	budgets   *budget.Office
	grants    *grant.Office
	door      *door.Door
	waiting   *waiting.Desk
	proposer  *proposer
	forwarder *forward.Forwarder
	reads     *reads.Reads
	peers     *peers.Clients
	former    *form.Former
	prober    *probe.Prober
	crash     *crash.Watch
	calendar  *calendar.Keeper
	announcer nudger
	// doubt wakes whoever watches the leadership.
	doubt nudger
	// announced are the Raft ids that have announced themselves. It belongs to
	// raft's applying goroutine.
	announced map[string]bool
	// warned holds warnings of limits back; it belongs to the same goroutine.
	warned notice.Rarely
	// roster is who is a member, changer changes that.
	roster  *roster.Roster
	changer *roster.Changer

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

// Open starts a node: it binds the peer port, so that a port that is taken
// leaves no new data directory behind; takes the data directory, opens the
// stores, accepts peers, starts raft on what is stored, and then everything that needs a
// running raft. It returns before the node knows a leader; see Status. ctx
// bounds the start only. Close releases everything.
func Open(ctx context.Context, c Config) (*Node, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	n := newNode(c)
	for _, step := range []func() error{
		func() error { return n.bindPeer(ctx) },
		n.openAudit, n.openIdentity, n.openStores, func() error { return n.openNetwork(ctx) }, n.openRaft,
		n.openProber, n.openChanger, n.openForming, n.openMetrics, n.openServer,
	} {
		if err := step(); err != nil {
			//nolint:contextcheck // closing has a deadline of its own, whatever ended the start
			return nil, errors.Join(err, n.Close())
		}
	}
	//nolint:contextcheck // ctx bounds the start; the loops end with Close
	n.startLoops()
	return n, nil
}

func newNode(c Config) *Node {
	n := &Node{
		config:    c,
		logger:    c.Logger,
		events:    events.New(0, nil),
		overview:  overview.New(time.Now()),
		metrics:   metrics.New(),
		announcer: newNudger(),
		doubt:     newNudger(),
		announced: make(map[string]bool),
		closing:   make(chan struct{}),
		halt:      make(chan struct{}),
		done:      make(chan struct{}),
	}
	if n.config.Wall == nil {
		n.config.Wall = time.Now
	}
	if n.logger == nil {
		n.logger = hclog.NewNullLogger()
	}
	n.events.Tell(n.overview.Happened)
	n.logger = n.logger.Named("cluster").With("node", c.ID)
	n.roster = roster.New(func() []identity.Member { return n.identity.Record().Members })
	n.clock = clock.New(c.Elapsed)
	n.door = door.New(c.MaxPending, c.MaxQueued)
	n.proposer = newProposer(n)
	n.waiting = waiting.New(waiting.Config{
		Door: n.door, View: n.view, Propose: n.proposer.enqueue, Reroute: n.reroute, Leaderless: n.leaderless,
		Denied:  func(r *logv1.AcquireResult) { n.grants.Denied(r) },
		Elapsed: n.clock.Elapsed, FlightMax: c.MaxWait, Bounds: c.QueueBounds(),
	})
	n.forwarder = forward.New(forward.Config{
		Door: n.door, Leader: n.otherLeader, Reroute: n.reroute, QueueMax: 2 * c.MaxPending,
		Client: func(address string) (peerv1.PeerClient, error) { return n.peers.Client(address) },
	})
	n.crash = n.newCrashWatch()
	n.reads = reads.New(func() (index, term uint64) { return n.fsm.reached.Last(), n.proposer.term() }, n.verifyLeads)
	n.fsm = newRaftFSM(n.clock, n.metrics, n.roster)
	n.calendar = n.newCalendar()
	n.fsm.fail, n.fsm.onBegin = n.fail, n.proposer.begun.nudge
	n.fsm.onStep, n.fsm.onRestore, n.fsm.onMembers = n.observe, n.restored, n.membersChanged
	return n
}

func (n *Node) openIdentity() error {
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
	n.fsm.desk = retries.NewDesk(dir.RaftID())
	n.budgets = n.newBudgets(n.fsm.desk)
	n.grants = n.newGrants()
	n.usage, err = usage.Open(usage.Config{
		Dir: filepath.Join(n.config.DataDir, "usage"), Node: n.config.ID, Metrics: n.metrics, Logger: n.logger.Named("usage"),
	})
	return err
}

// openAudit opens the file of decisions, before anything is written.
func (n *Node) openAudit() (err error) {
	n.audit, err = audit.Open(audit.Config{
		Path: n.config.Audit, Bytes: n.config.AuditBytes, Keep: n.config.AuditKeep, Sample: n.config.AuditSample,
		Node: n.config.ID, Metrics: n.metrics, Events: n.events, Logger: n.logger.Named("audit"),
	})
	return err
}

// bindPeer takes the peer port, before anything is written.
func (n *Node) bindPeer(ctx context.Context) (err error) {
	n.bound, err = wire.Bind(ctx, wire.Config{Network: n.config.Network, Addr: n.config.Peer})
	return err
}

// openNetwork accepts peers. Nobody is let in yet: raft is not there.
func (n *Node) openNetwork(ctx context.Context) error {
	var err error
	n.listener, err = wire.Listen(ctx, wire.Config{
		Addr: n.config.Peer, Bound: n.bound, Self: n.self, Admit: n.admitPeer, Logger: n.logger.Named("wire"),
	})
	if err != nil {
		return err
	}
	n.advertise = n.config.Advertised(n.listener.Addr())
	n.outgoing = wire.NewOutgoing(n.config.Network)
	n.dialer = wire.NewDialer(wire.DialerConfig{
		Network: n.outgoing.Network(), Self: n.self, Expect: n.roster.At, OnFailure: n.crash.Dialled,
		Logger: n.logger.Named("wire"),
	})
	n.peers = peers.New(n.dialer.DialGRPC)
	return nil
}

func (n *Node) openRaft() error {
	logger := calm.New(n.logger.Named("raft"))
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
	if err := n.grants.Found(logs.LastIndex()); err != nil {
		return fmt.Errorf("read the end of the log: %w", err)
	}
	n.raft, err = raft.NewRaft(raftConfig(n.config, n.id, logger), n.fsm, logs,
		n.watchdog.StableStore(n.stores.Log), n.stores.Snapshots, n.transport)
	if err != nil {
		return fmt.Errorf("%w: start raft: %w", ErrProtected, errors.Join(n.fsm.haltedBy(), err))
	}
	n.roster.Attach(n.raft)
	return nil
}

func (n *Node) openMetrics() error {
	n.addGauges()
	return n.metrics.Register(n.config.Registerer)
}

// startLoops starts what needs a running raft.
func (n *Node) startLoops() {
	n.loops.Go(func() { n.door.Sweep(n.halt) })
	n.loops.Go(func() { n.proposer.run(n.halt) })
	n.loops.Go(func() { n.waiting.Run(n.halt) })
	n.early.Go(func() { n.grants.Keep(n.closing) })
	n.loops.Go(func() { n.watchLeadership(n.halt) })
	n.prober.Start()
	if n.identity.Record().ClusterID != "" {
		n.until(n.refuseStrangers)
	}
	n.until(n.formOrFind)
	n.early.Go(func() { n.reads.Run(n.closing) })
	n.early.Go(func() { n.watchLeader(n.closing) })
	n.until(n.crash.Run)
	n.until(n.keepRoster)
	n.until(n.calendar.Run)
	n.early.Go(func() { n.budgets.KeepReported(n.closing) })
	n.early.Go(func() { n.budgets.KeepWarned(n.closing) })
	n.loops.Go(func() { n.keepSnapshots(n.halt) })
	if n.config.Registerer != nil {
		// Free pages and the like; zero: every five seconds (R15).
		n.until(func(ctx context.Context) { n.stores.Log.RunMetrics(ctx, 0) })
	}
}

// until runs a loop whose context ends when Close begins.
func (n *Node) until(run func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	n.early.Go(func() {
		<-n.closing
		cancel()
	})
	n.early.Go(func() { run(ctx) })
}
