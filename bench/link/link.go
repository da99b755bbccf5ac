// Package link asks Quorlease for tokens through one connection that many callers
// share, by calls or by a session, and outlives the node that it is connected to.
package link

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/bench"
	"github.com/quorlease/quorlease/bench/load"
	"github.com/quorlease/quorlease/client/session"
)

const (
	// statusWait is how long a node may take to say who leads.
	statusWait = 300 * time.Millisecond
	// openWait is how long a node may take to accept a session.
	openWait = time.Second
)

// Config says what is asked for, and how.
type Config struct {
	// Endpoints are client addresses, at least one.
	Endpoints []string
	// Stay: the connection is to an endpoint itself rather than to the leader.
	Stay bool
	// Session: all callers share one stream, and whoever waits travels in one
	// message. Otherwise each asks in a call of its own.
	Session bool
	// Timeout is the longest that one call may take.
	Timeout time.Duration
	// Client is the name that callers give.
	Client string
	// One token of Dimension of Limit is asked for, by one of Keys.
	Limit, Dimension string
	Keys             []string
}

// Link is the one connection that all callers share. When it fails the next one
// is to another node, the leader where somebody knows it. It may be used by many
// at the same time.
type Link struct {
	config Config

	// current is nil where none is known to work.
	current atomic.Pointer[attachment]

	// mu guards what follows, and changes of current.
	mu     sync.Mutex
	failed string
	tried  int

	bounds bounds
}

// attachment is one connection, and the session on it.
type attachment struct {
	address   string
	conn      *grpc.ClientConn
	admission quorleasev1.AdmissionClient
	session   *session.Session
}

// New returns a link that connects when somebody asks.
func New(c Config) *Link { return &Link{config: c} }

// Close ends the connection. Nobody may ask any more.
func (l *Link) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.current.Swap(nil).close()
	return nil
}

func (a *attachment) close() {
	if a == nil {
		return
	}
	if a.session != nil {
		_ = a.session.Close()
	}
	_ = a.conn.Close()
}

// Connect connects before anybody asks, so that no question has to wait for it.
func (l *Link) Connect(ctx context.Context) error {
	_, err := l.attached(ctx)
	return err
}

// attached is the connection to use now.
func (l *Link) attached(ctx context.Context) (*attachment, error) {
	if a := l.current.Load(); a != nil {
		return a, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.current.Load(); a != nil {
		return a, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	address, err := l.find(ctx)
	if err != nil {
		return nil, err
	}
	conn, err := bench.Dial(address)
	if err != nil {
		return nil, err
	}
	a := &attachment{address: address, conn: conn, admission: quorleasev1.NewAdmissionClient(conn)}
	if l.config.Session {
		opening, cancel := context.WithTimeout(ctx, openWait)
		defer cancel()
		a.session, err = session.Open(opening, conn, session.Hello{Client: l.config.Client, SessionID: bench.NewID()})
		if err != nil {
			l.failed = address
			return nil, errors.Join(err, conn.Close())
		}
	}
	l.current.Store(a)
	return a, nil
}

// find asks the endpoints who leads, and takes the one that answers where nobody
// does or the leader is the one that just failed.
func (l *Link) find(ctx context.Context) (string, error) {
	var last error
	for range l.config.Endpoints {
		address := l.config.Endpoints[l.tried%len(l.config.Endpoints)]
		l.tried++
		if l.config.Stay {
			return address, nil
		}
		status, err := clusterStatus(ctx, address)
		if err != nil {
			last = err
			continue
		}
		for _, node := range status.GetNodes() {
			if node.GetId() == status.GetLeader() && node.GetGrpc() != l.failed {
				return node.GetGrpc(), nil
			}
		}
		return address, nil
	}
	return "", fmt.Errorf("no node answers: %w", last)
}

func clusterStatus(ctx context.Context, address string) (*quorleasev1.ClusterStatusResponse, error) {
	conn, err := bench.Dial(address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, statusWait)
	defer cancel()
	return quorleasev1.NewClusterClient(conn).Status(ctx, &quorleasev1.ClusterStatusRequest{})
}

// drop gives a connection up, unless somebody else already has.
func (l *Link) drop(a *attachment) {
	l.mu.Lock()
	mine := l.current.CompareAndSwap(a, nil)
	if mine {
		l.failed = a.address
	}
	l.mu.Unlock()
	if mine {
		a.close()
	}
}

// Asker is that of one more caller.
func (l *Link) Asker() load.Asker { return &asker{link: l, question: l.question()} }

// asker is one caller on the link. As a client does, it remembers which rules
// for deciding alone it has been told, so that it is not told again.
type asker struct {
	link *Link
	*question
	knows *uint64
}

// question is what a caller asks, again and again: to make it anew for each time would
// be the caller's own time, which the echo does not take either.
type question struct {
	item    quorleasev1.RequestItem
	kind    quorleasev1.RequestItem_Acquire
	acquire quorleasev1.AcquireRequest
	charge  quorleasev1.Charge
}

func (l *Link) question() *question {
	q := &question{}
	q.charge.Limit, q.charge.Dimension, q.charge.Amount = l.config.Limit, l.config.Dimension, 1
	q.acquire.Client, q.acquire.Charges = l.config.Client, []*quorleasev1.Charge{&q.charge}
	q.kind.Acquire, q.item.Operation = &q.acquire, &q.kind
	return q
}

func (a *asker) Ask(ctx context.Context, key int) (load.Answer, error) {
	at, err := a.link.attached(ctx)
	if err != nil {
		return load.Answer{}, err
	}
	call, err := a.link.bounded(ctx)
	if err != nil {
		return load.Answer{}, err
	}
	a.charge.Key = a.link.config.Keys[key]
	var response *quorleasev1.AcquireResponse
	if at.session != nil {
		var item *quorleasev1.ResponseItem
		item, err = at.session.Do(call, &a.item)
		response = item.GetAcquire()
	} else {
		response, err = at.admission.Acquire(call, &a.acquire)
	}
	if err != nil {
		// What was sent may be looked at yet.
		a.question = a.link.question()
		a.acquire.KnownRevision = a.knows
		if ctx.Err() == nil && elsewhere(err) {
			a.link.drop(at)
		}
		return load.Answer{}, err
	}
	if news := response.GetFallbacks(); news != nil {
		revision := news.GetRevision()
		a.knows, a.acquire.KnownRevision = &revision, &revision
	}
	granted := response.GetDecision() == quorleasev1.Decision_GRANTED
	return load.Answer{Granted: granted, Escrow: granted && held(response.GetSource())}, nil
}

// held says whether a node gave what it held, and no log entry was made for it.
func held(source quorleasev1.Source) bool {
	switch source {
	case quorleasev1.Source_SOURCE_UNSPECIFIED, quorleasev1.Source_CONSENSUS, quorleasev1.Source_LOCAL:
		return false
	default:
		return true
	}
}

// elsewhere says whether another node may do better: this one is gone, hung, or
// without a majority. An election is one on every node.
func elsewhere(err error) bool {
	switch Reason(err) {
	case "SESSION_ENDED", "SHUTTING_DOWN", "NO_QUORUM", "DEADLINE_EXCEEDED", "UNAVAILABLE", "CANCELED":
		return true
	default:
		return false
	}
}

// Reason names a failure as the reference of errors does, or else by its code.
func Reason(err error) string {
	if errors.Is(err, session.ErrEnded) {
		return "SESSION_ENDED"
	}
	if said := session.Reason(err); said != "" {
		return said
	}
	failure, ok := status.FromError(err)
	switch {
	case errors.Is(err, context.DeadlineExceeded), ok && failure.Code() == codes.DeadlineExceeded:
		return "DEADLINE_EXCEEDED"
	case ok && failure.Code() == codes.Unavailable:
		return "UNAVAILABLE"
	case ok && failure.Code() == codes.Canceled:
		return "CANCELED"
	case ok:
		return failure.Code().String()
	default:
		return "UNREACHABLE"
	}
}
