package contention

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/bench"
	"github.com/quorlease/quorlease/client/session"
)

const (
	limitName  = "bench-contention"
	dimension  = "requests"
	clientName = "bench"
	// statusWait is how long a node may take to say who leads.
	statusWait = 300 * time.Millisecond
	// openWait is how long a node may take to accept a session.
	openWait = time.Second
)

func keyName(i int) string { return "key-" + strconv.Itoa(i) }

// link is the one connection that all callers share. When it fails the next one
// is to another node, the leader where somebody knows it.
type link struct {
	endpoints []string
	path      Path
	timeout   time.Duration
	keys      []string

	mu sync.Mutex
	// current is nil where none is known to work. Guarded by mu, as the rest.
	current *attachment
	failed  string
	tried   int
}

// attachment is one connection, and the session on it.
type attachment struct {
	address string
	conn    *grpc.ClientConn
	session *session.Session
}

func newLink(c *Config, endpoints []string) *link {
	l := &link{endpoints: endpoints, path: c.Path, timeout: c.Timeout, keys: make([]string, c.Keys)}
	for i := range l.keys {
		l.keys[i] = keyName(i)
	}
	return l
}

func (l *link) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.current.close()
	l.current = nil
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

// attached is the connection to use now.
func (l *link) attached(ctx context.Context) (*attachment, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current != nil {
		return l.current, nil
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
	a := &attachment{address: address, conn: conn}
	if l.path == Session {
		opening, cancel := context.WithTimeout(ctx, openWait)
		defer cancel()
		a.session, err = session.Open(opening, conn, session.Hello{Client: clientName, SessionID: bench.NewID()})
		if err != nil {
			l.failed = address
			return nil, errors.Join(err, conn.Close())
		}
	}
	l.current = a
	return a, nil
}

// find asks the endpoints who leads, and takes the one that answers where nobody
// does or the leader is the one that just failed.
func (l *link) find(ctx context.Context) (string, error) {
	var last error
	for range l.endpoints {
		address := l.endpoints[l.tried%len(l.endpoints)]
		l.tried++
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
func (l *link) drop(a *attachment) {
	l.mu.Lock()
	mine := l.current == a
	if mine {
		l.current, l.failed = nil, a.address
	}
	l.mu.Unlock()
	if mine {
		a.close()
	}
}

// linkAsker is one caller on the link. As a client does, it remembers which rules
// for deciding alone it has been told, so that it is not told again.
type linkAsker struct {
	link  *link
	knows *uint64
}

func (a *linkAsker) ask(ctx context.Context, key int) (answer, error) {
	at, err := a.link.attached(ctx)
	if err != nil {
		return answer{}, err
	}
	request := &quorleasev1.AcquireRequest{
		Client:        clientName,
		Charges:       []*quorleasev1.Charge{{Limit: limitName, Key: a.link.keys[key], Dimension: dimension, Amount: 1}},
		KnownRevision: a.knows,
	}
	call, cancel := context.WithTimeout(ctx, a.link.timeout)
	defer cancel()
	var response *quorleasev1.AcquireResponse
	if at.session != nil {
		var item *quorleasev1.ResponseItem
		item, err = at.session.Do(call,
			&quorleasev1.RequestItem{Operation: &quorleasev1.RequestItem_Acquire{Acquire: request}})
		response = item.GetAcquire()
	} else {
		response, err = quorleasev1.NewAdmissionClient(at.conn).Acquire(call, request)
	}
	if err != nil {
		if ctx.Err() == nil && elsewhere(err) {
			a.link.drop(at)
		}
		return answer{}, err
	}
	if news := response.GetFallbacks(); news != nil {
		revision := news.GetRevision()
		a.knows = &revision
	}
	return answer{granted: response.GetDecision() == quorleasev1.Decision_GRANTED}, nil
}

// elsewhere says whether another node may do better: this one is gone, hung, or
// without a majority. An election is one on every node.
func elsewhere(err error) bool {
	switch reason(err) {
	case "SESSION_ENDED", "SHUTTING_DOWN", "NO_QUORUM", "DEADLINE_EXCEEDED", "UNAVAILABLE", "CANCELED":
		return true
	default:
		return false
	}
}

// reason names a failure as the reference of errors does, or else by its code.
func reason(err error) string {
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
