package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
)

// Config configures a Listener.
type Config struct {
	// Network opens the listener. Zero: TCP.
	Network Network
	// Addr is where to listen, host:port. Required.
	Addr string
	// Flag is what the operator calls Addr, for errors. Default "--peer".
	Flag string
	// Bound is what Bind returned for this Config, to accept on; the Listener
	// closes it. Nil: Listen binds.
	Bound net.Listener
	// Self is this node's cluster id (empty: none yet) and Raft id, asked for
	// each handshake. Required.
	Self func() (clusterID, raftID string)
	// Admit refuses a peer by returning an error, which the peer is told. It
	// must not block: it runs for strangers too. Another cluster's id has been
	// refused before it is asked. An error that wraps none of this package's
	// sentinels is sent as ErrUnknownNode. Required.
	Admit func(kind Kind, clusterID, raftID string) error
	// ConnsMax bounds admitted connections. Default 256.
	ConnsMax int
	// StrangersMax bounds those of them that named no cluster. Beyond it the
	// oldest is closed: who looks for a cluster asks and leaves, and must not
	// take the members' room. Default a quarter of ConnsMax.
	StrangersMax int
	// PendingMax bounds connections that have not finished their handshake.
	// Beyond it the oldest is closed: an honest handshake takes milliseconds,
	// so strangers who hold connections open push out one another. Default 64.
	PendingMax int
	// Timeout bounds a handshake. Default 5 s.
	Timeout time.Duration
	// Limits bound Raft connections.
	Limits Limits
	// Logger hears of refusals, once a source a minute. Nil: nobody does.
	Logger hclog.Logger
}

// Listener accepts the connections of peers and deals them out by kind.
type Listener struct {
	config  Config
	inner   net.Listener
	raft    *door
	grpc    *door
	quiet   quiet
	refused atomic.Uint64
	done    chan struct{}
	running sync.WaitGroup

	mu struct {
		sync.Mutex
		closed bool
		// pending are in the order of their arrival.
		pending []net.Conn
		open    map[*counted]struct{}
		// strangers are those of open that named no cluster, in the order of
		// their arrival.
		strangers []*counted
	}
}

// Bind takes the address, of which Network, Addr and Flag are used, without
// accepting anybody yet: whoever dials waits. The error names flag and address.
func Bind(ctx context.Context, c Config) (net.Listener, error) {
	if c.Network.Listen == nil {
		c.Network.Listen = TCP().Listen
	}
	if c.Flag == "" {
		c.Flag = "--peer"
	}
	inner, err := c.Network.Listen(ctx, c.Addr)
	if err != nil {
		return nil, listenError(c.Flag, c.Addr, err)
	}
	return inner, nil
}

// Listen opens the listener, unless it is bound, and starts to accept. Close
// releases it.
func Listen(ctx context.Context, c Config) (*Listener, error) {
	if c.ConnsMax <= 0 {
		c.ConnsMax = 256
	}
	if c.StrangersMax <= 0 {
		c.StrangersMax = max(1, c.ConnsMax/4)
	}
	if c.PendingMax <= 0 {
		c.PendingMax = 64
	}
	if c.Timeout <= 0 {
		c.Timeout = handshakeTimeout
	}
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	inner := c.Bound
	if inner == nil {
		var err error
		if inner, err = Bind(ctx, c); err != nil {
			return nil, err
		}
	}
	l := &Listener{config: c, inner: inner, done: make(chan struct{})}
	l.mu.open = make(map[*counted]struct{})
	l.raft, l.grpc = newDoor(l), newDoor(l)
	l.running.Go(l.accept)
	return l, nil
}

// Raft gives the connections for Raft, with limits. Closing it stops only
// what it gives.
func (l *Listener) Raft() net.Listener { return l.raft }

// GRPC gives the connections for the peers' gRPC server. Closing it stops only
// what it gives.
func (l *Listener) GRPC() net.Listener { return l.grpc }

// Addr is the address listened on, with the port that was drawn for port 0.
func (l *Listener) Addr() net.Addr { return l.inner.Addr() }

// Refused counts the connections that were turned away.
func (l *Listener) Refused() uint64 { return l.refused.Load() }

// Close stops accepting, closes every connection that was accepted (Raft's
// transport leaves its own open, R40) and waits for the handshakes. It is
// idempotent.
func (l *Listener) Close() error {
	l.mu.Lock()
	if l.mu.closed {
		l.mu.Unlock()
		l.running.Wait()
		return nil
	}
	l.mu.closed = true
	close(l.done)
	conns := l.mu.pending
	for c := range l.mu.open {
		conns = append(conns, c)
	}
	l.mu.Unlock()
	err := l.inner.Close()
	for _, c := range conns {
		_ = c.Close()
	}
	l.running.Wait()
	return err
}

// accept runs until Close. An error to accept (out of descriptors) passes: it
// waits a little longer each time, up to a second.
func (l *Listener) accept() {
	const first, most = 5 * time.Millisecond, time.Second
	delay := first
	for {
		conn, err := l.inner.Accept()
		if err == nil {
			delay = first
			if l.begin(conn) {
				l.running.Go(func() { l.receive(conn) })
			}
			continue
		}
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if l.quiet.allows(time.Now(), "accept") {
			l.config.Logger.Warn("peer connection not accepted", "err", err)
		}
		select {
		case <-l.done:
			return
		case <-time.After(delay):
			delay = min(2*delay, most)
		}
	}
}

// begin notes a connection whose handshake begins, and closes the oldest such
// where there are too many.
func (l *Listener) begin(conn net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.closed {
		_ = conn.Close()
		return false
	}
	if len(l.mu.pending) >= l.config.PendingMax {
		_ = l.mu.pending[0].Close()
		l.mu.pending = l.mu.pending[1:]
		l.refused.Add(1)
	}
	l.mu.pending = append(l.mu.pending, conn)
	return true
}

// endedLocked takes a connection out of the pending ones.
func (l *Listener) endedLocked(conn net.Conn) {
	for i, c := range l.mu.pending {
		if c == conn {
			l.mu.pending = append(l.mu.pending[:i:i], l.mu.pending[i+1:]...)
			return
		}
	}
}

// receive shakes hands with one connection and hands it over.
func (l *Listener) receive(conn net.Conn) {
	deadline := time.Now().Add(l.config.Timeout)
	_ = conn.SetDeadline(deadline)
	peer, err := readHello(conn)
	if err == nil {
		err = l.admit(peer)
	}
	var admitted *counted
	if err == nil {
		admitted, err = l.open(conn, peer)
	}
	if err != nil {
		l.refuse(conn, peer, err)
		return
	}
	if _, err := conn.Write(encodeAnswer(l.self(peer.Kind), CodeWelcome, "")); err != nil {
		_ = admitted.Close()
		return
	}
	_ = conn.SetDeadline(time.Time{})
	l.deal(admitted, peer.Kind, deadline)
}

func (l *Listener) self(kind Kind) Peer {
	clusterID, raftID := l.config.Self()
	return Peer{Kind: kind, ClusterID: clusterID, RaftID: raftID}
}

func (l *Listener) admit(peer Peer) error {
	self := l.self(peer.Kind)
	if peer.ClusterID != "" && self.ClusterID != "" && peer.ClusterID != self.ClusterID {
		return fmt.Errorf("%s %w: %s, this node to %s", peer.RaftID, ErrOtherCluster, peer.ClusterID, self.ClusterID)
	}
	return l.config.Admit(peer.Kind, peer.ClusterID, peer.RaftID)
}

// open turns a pending connection into an admitted one, if there is room.
func (l *Listener) open(conn net.Conn, peer Peer) (*counted, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.closed {
		return nil, net.ErrClosed
	}
	stranger := peer.ClusterID == ""
	if stranger && len(l.mu.strangers) >= l.config.StrangersMax {
		oldest := l.mu.strangers[0]
		l.closedLocked(oldest)
		_ = oldest.Conn.Close()
		l.refused.Add(1)
	}
	if n := len(l.mu.open); n >= l.config.ConnsMax {
		return nil, fmt.Errorf("this node %w: %d, at most %d", ErrBusy, n, l.config.ConnsMax)
	}
	l.endedLocked(conn)
	c := &counted{Conn: conn, owner: l, peer: peer}
	l.mu.open[c] = struct{}{}
	if stranger {
		l.mu.strangers = append(l.mu.strangers, c)
	}
	return c, nil
}

// closedLocked takes an admitted connection out of the open ones.
func (l *Listener) closedLocked(c *counted) {
	delete(l.mu.open, c)
	if i := slices.Index(l.mu.strangers, c); i >= 0 {
		l.mu.strangers = slices.Delete(l.mu.strangers, i, i+1)
	}
}

// refuse tells the peer why, where it could be understood at all, and closes.
func (l *Listener) refuse(conn net.Conn, peer Peer, err error) {
	l.mu.Lock()
	l.endedLocked(conn)
	closed := l.mu.closed
	l.mu.Unlock()
	if !closed {
		l.refused.Add(1)
		if peer.Kind != 0 {
			_, _ = conn.Write(encodeAnswer(l.self(peer.Kind), codeOf(err), err.Error()))
		}
		l.logRefusal(conn, peer, err)
	}
	_ = conn.Close()
}

func (l *Listener) logRefusal(conn net.Conn, peer Peer, err error) {
	source := conn.RemoteAddr().String()
	if host, _, splitErr := net.SplitHostPort(source); splitErr == nil {
		source = host
	}
	if !errors.Is(err, ErrStarting) && l.quiet.allows(time.Now(), source) {
		l.config.Logger.Warn("peer refused", "peer", source, "node", peer.RaftID, "err", err)
	}
}

// deal hands an admitted connection to whoever accepts its kind.
func (l *Listener) deal(c *counted, kind Kind, deadline time.Time) {
	to, conn := l.grpc, net.Conn(c)
	if kind == Raft {
		to, conn = l.raft, limit(c, l.config.Limits, false, nil)
	}
	patience := time.NewTimer(time.Until(deadline))
	defer patience.Stop()
	select {
	case to.conns <- conn:
	case <-to.shut:
		_ = conn.Close()
	case <-l.done:
		_ = conn.Close()
	case <-patience.C:
		_ = conn.Close()
	}
}

// counted is an admitted connection; closing it makes room.
type counted struct {
	net.Conn
	owner *Listener
	peer  Peer
}

// Peer is who shook hands. A server finds it on the connections it accepts.
func (c *counted) Peer() Peer { return c.peer }

// Close closes the connection and makes room for another.
func (c *counted) Close() error {
	c.owner.mu.Lock()
	c.owner.closedLocked(c)
	c.owner.mu.Unlock()
	return c.Conn.Close()
}

// NetConn is the connection underneath.
func (c *counted) NetConn() net.Conn { return c.Conn }

// door is the net.Listener of one kind.
type door struct {
	owner *Listener
	conns chan net.Conn
	shut  chan struct{}
	close sync.Once
}

func newDoor(l *Listener) *door {
	return &door{owner: l, conns: make(chan net.Conn), shut: make(chan struct{})}
}

// Accept waits for the next connection of the door's kind.
func (d *door) Accept() (net.Conn, error) {
	select {
	case c := <-d.conns:
		return c, nil
	case <-d.shut:
	case <-d.owner.done:
	}
	return nil, net.ErrClosed
}

// Close ends Accept.
func (d *door) Close() error {
	d.close.Do(func() { close(d.shut) })
	return nil
}

// Addr is the address of the one listener.
func (d *door) Addr() net.Addr { return d.owner.inner.Addr() }
