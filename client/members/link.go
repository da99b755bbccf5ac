package members

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/quorlease/quorlease/api/codec"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/client/session"
)

// link is one address and the goroutine that keeps a session to it.
type link struct {
	members *Members
	address string
	// seed: it was configured, and is never forgotten.
	seed   bool
	cancel context.CancelFunc
	// kick has room for one signal: its status should be asked for at once.
	kick chan struct{}
	// reachedAt is when it was reached last, in Unix nanoseconds, and warm that this was
	// some time ago.
	reachedAt atomic.Int64
	warm      atomic.Bool
	// answeredAt is when it answered last what Any chose it for, in Unix nanoseconds.
	answeredAt atomic.Int64

	// What follows is guarded by members.mu.

	// id is what nodes call it; empty where none has told.
	id string
	// session is open, or was the last one that was.
	session *session.Session
	// failed: it was tried and could not be reached, or did not answer, and was not
	// reached since. err says why.
	failed bool
	err    error
	// answers are what the session had received when it failed by silence: one that has
	// received more since was only slow.
	answers uint64
	// cluster is the id of the cluster that it last told of.
	cluster string
	// status is its last answer; nil where it does not tell.
	status *quorleasev1.ClusterStatusResponse
	// leaderless: it said so in answer to something else, after that.
	leaderless bool
	// minority: the last call that failed there failed because it sees no majority. In an
	// election it comes behind those of whom one may be elected.
	minority bool
	// doubt is until when others are asked first, slow until when it has no turn.
	doubt, slow time.Time
}

// addLocked begins to keep a session to an address, unless it does so. It returns
// nil where there is no room.
func (m *Members) addLocked(address string, seed bool) *link {
	for _, l := range m.links {
		if l.address == address {
			return l
		}
	}
	if len(m.links) >= LinksMax || m.closed {
		return nil
	}
	l := &link{members: m, address: address, seed: seed, kick: make(chan struct{}, 1)}
	life, cancel := context.WithCancel(m.life)
	l.cancel = cancel
	m.links = append(m.links, l)
	m.joined.Go(func() {
		defer cancel()
		l.run(life)
	})
	return l
}

// usableLocked says whether calls may go there.
func (l *link) usableLocked() bool {
	return l.session != nil && alive(l.session) &&
		(!l.failed || errors.Is(l.err, errSilent) && l.session.Answers() != l.answers)
}

// leaderlessLocked says whether the node told that it knows no leader.
func (l *link) leaderlessLocked() bool {
	return l.leaderless || l.status != nil && l.status.GetLeader() == ""
}

// rankLocked orders nodes: the lower comes first. Who leads makes the least difference.
func (l *link) rankLocked(now time.Time, leader Endpoint) (rank int) {
	if l.leaderlessLocked() {
		rank += 4
		if l.minority {
			rank += 8
		}
	}
	if l.doubt.After(now) {
		rank += 2
	}
	if l.address != leader.Address {
		rank++
	}
	return rank
}

// run keeps a session until life ends. A session that lasted is opened again
// almost at once; what fails waits longer each time, and never as long as others
// do.
func (l *link) run(life context.Context) {
	config := &l.members.config
	longest := config.BackoffMin
	for life.Err() == nil {
		if lasted := l.once(life); lasted >= config.BackoffMax {
			longest = config.BackoffMin
		}
		// The pause is short enough for every node to be tried within a second of its
		// return, and drawn so that clients that lost a node together don't come back
		// together.
		timer := time.NewTimer(time.Duration(1 + rand.Int64N(int64(longest))))
		select {
		case <-timer.C:
		case <-life.Done():
			timer.Stop()
		}
		longest = min(2*longest, config.BackoffMax)
	}
}

// once connects, opens a session and attends to it until it ends. It returns how
// long it lasted.
func (l *link) once(life context.Context) (lasted time.Duration) {
	var line wire
	conn, err := l.dial(&line)
	if err != nil {
		l.failedWith(err)
		return 0
	}
	defer conn.Close()
	// First: gRPC would wait for seconds to say goodbye to somebody who takes nothing.
	defer line.cut()
	s, told, err := l.open(life, conn)
	if err != nil {
		l.failedWith(err)
		return 0
	}
	defer s.Close()
	up := time.Now()
	if err := l.reached(s, told); err != nil { //nolint:contextcheck // what is learnt outlives the connection
		l.failedWith(err)
		return 0
	}
	err = l.attend(life, conn, s)
	l.lost(err)
	return time.Since(up)
}

// wire is what a connection was last dialled as.
type wire struct {
	mu   sync.Mutex
	last net.Conn
	gone bool
}

// keep remembers a connection, or closes it where it comes late.
func (w *wire) keep(conn net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last = conn; w.gone {
		_ = conn.Close()
	}
}

// cut closes it, and whatever comes later.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gone = true; w.last != nil {
		_ = w.last.Close()
	}
}

func (l *link) dial(line *wire) (*grpc.ClientConn, error) {
	config := &l.members.config
	transport := config.Credentials
	if transport == nil {
		transport = insecure.NewCredentials()
	}
	dial := config.Dial
	if dial == nil {
		dial = func(ctx context.Context, address string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", address)
		}
	}
	return grpc.NewClient("passthrough:///"+l.address,
		grpc.WithTransportCredentials(transport),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			conn, err := dial(ctx, address)
			if err == nil {
				line.keep(conn)
			}
			return conn, err
		}),
		// A connection is tried once and then given up: when to try again is ours to
		// say, and so is what to repeat.
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: config.ConnectMax}),
		grpc.WithDisableRetry(), grpc.WithDisableServiceConfig(), grpc.WithIdleTimeout(0),
		grpc.WithUserAgent("quorlease-client"),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(codec.New())))
}

// open asks the node for its status, which shows that it is alive, and opens a
// session.
func (l *link) open(
	life context.Context, conn *grpc.ClientConn,
) (*session.Session, *quorleasev1.ClusterStatusResponse, error) {
	config := &l.members.config
	ctx, cancel := context.WithTimeout(life, config.ConnectMax)
	defer cancel()
	told, err := ask(ctx, conn)
	if err != nil {
		return nil, nil, fmt.Errorf("connect: %w", err)
	}
	s, err := session.Open(ctx, conn, l.members.hello())
	return s, told, err
}

// ask returns a node's status, or nil where it answers and does not tell, for
// whatever reason it gives.
func ask(ctx context.Context, conn *grpc.ClientConn) (*quorleasev1.ClusterStatusResponse, error) {
	told, err := quorleasev1.NewClusterClient(conn).Status(ctx, &quorleasev1.ClusterStatusRequest{})
	switch code := status.Code(err); {
	case err == nil:
		return told, nil
	case code == codes.PermissionDenied, code == codes.Unimplemented, session.Reason(err) == "OVERLOADED":
		// A session may still be allowed.
		return nil, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return nil, err
}

// failedWith notes an attempt that failed.
func (l *link) failedWith(err error) {
	m := l.members
	m.mu.Lock()
	defer m.mu.Unlock()
	l.session, l.status, l.failed, l.err = nil, nil, true, err
	m.orderLocked(time.Now())
}

// errForeign: the address leads to another cluster.
var errForeign = errors.New("it belongs to another cluster")

// belongsLocked says whether a node is of the cluster that the others are of. Two
// clusters by mistake in one list of endpoints must not be taken for one: each
// grants all of the limit. Where an address that led to the cluster leads to
// another one, and nobody of the old one is left, the cluster was made anew.
func (l *link) belongsLocked(told *quorleasev1.ClusterStatusResponse) error {
	m, id := l.members, told.GetClusterId()
	if id == "" || id == m.cluster {
		return nil
	}
	left := slices.ContainsFunc(m.links, func(o *link) bool { return o.usableLocked() && o.cluster == m.cluster })
	if m.cluster != "" && (left || l.cluster != m.cluster) {
		return fmt.Errorf("%w: %s, not %s", errForeign, id, m.cluster)
	}
	m.cluster = id
	return nil
}

// reached notes that a session is open, unless it is to another cluster.
func (l *link) reached(s *session.Session, told *quorleasev1.ClusterStatusResponse) error {
	m := l.members
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := l.belongsLocked(told); err != nil {
		return err
	}
	if id := told.GetClusterId(); id != "" {
		l.cluster = id
	}
	l.reachedAt.Store(time.Now().UnixNano())
	l.warm.Store(false)
	l.session, l.status, l.failed, l.err, l.leaderless, l.minority = s, told, false, nil, false, false
	l.doubt, l.slow = time.Time{}, time.Time{}
	m.adoptLocked(told)
	m.orderLocked(time.Now())
	return nil
}

// lost notes that the session is over. Unless the node had failed before it is
// tried at once, and until that is known its callers may hope.
func (l *link) lost(err error) {
	m := l.members
	m.mu.Lock()
	defer m.mu.Unlock()
	l.session, l.status, l.err = nil, nil, err
	m.missLocked()
	m.troubleLocked(time.Now())
}

// troubleLocked: a node is lost, silent or doubted, so all are asked soon. If they
// are all away that should be known now rather than one by one.
func (m *Members) troubleLocked(now time.Time) {
	m.trouble = now
	for _, l := range m.links {
		signal(l.kick)
	}
	m.orderLocked(now)
}

// told notes an answer.
func (l *link) told(s *quorleasev1.ClusterStatusResponse) {
	m := l.members
	m.mu.Lock()
	defer m.mu.Unlock()
	l.failed, l.err = false, nil
	now := time.Now()
	switch {
	case s != nil:
		l.status, l.leaderless = s, false
		m.adoptLocked(s)
	case !l.doubt.After(now):
		// One that does not tell is believed again when that is over.
		l.leaderless = false
	}
	l.minority = l.minority && l.leaderlessLocked()
	m.orderLocked(now)
}

// silent notes that a node does not answer.
func (l *link) silent() {
	m := l.members
	m.mu.Lock()
	defer m.mu.Unlock()
	before := l.failed
	l.failed, l.err = true, errSilent
	if l.session != nil {
		l.answers = l.session.Answers()
	}
	if !before {
		m.troubleLocked(time.Now())
	}
}

var errSilent = errors.New("it does not answer")
