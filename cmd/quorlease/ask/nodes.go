// Package ask finds a node that answers.
//
// It asks the endpoints in their order; a dead one costs next to nothing and a
// hung one an equal part of what is left of the timeout, then the next is
// asked.
//
// Whether a question may be asked again depends on what became of it. Asking
// is split in two for that reason: a connection first, the question after it.
// A node that never gave a connection was never asked. A node that said
// NO_LEADER, NO_QUORUM or OVERLOADED did nothing. After anything else the
// outcome is unknown, and only a question that has the effect of one however
// often it is asked (G4) goes to the next endpoint.
package ask

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/quorlease/quorlease/cmd/quorlease/exit"
	"github.com/quorlease/quorlease/cmd/quorlease/netaddr"
)

const (
	// roundPause lies between two rounds over all endpoints while the cluster
	// elects a leader.
	roundPause = 100 * time.Millisecond
	// leastPart is what an endpoint gets at least.
	leastPart = 50 * time.Millisecond
	// largestAnswer bounds an answer, in bytes: a full list of limits fits.
	largestAnswer = 32 << 20
)

// Kind says what asking a question twice does.
type Kind int

const (
	// Read changes nothing.
	Read Kind = iota
	// Repeatable has the effect of one however often it is asked (G4).
	Repeatable
	// Once might happen twice.
	Once
)

// Question is one call.
type Question struct {
	Kind Kind
	// Call makes the call. It may be called once an endpoint, one after the
	// other.
	Call func(context.Context, grpc.ClientConnInterface) error
}

// Nodes are the endpoints with their connections. Single caller.
type Nodes struct {
	timeout time.Duration
	// wait is how long a node may hold a question.
	wait time.Duration
	list []*endpoint
}

// endpoint is one client address.
type endpoint struct {
	addr string
	conn *grpc.ClientConn

	mu sync.Mutex
	// dialErr is why the last attempt to connect failed. grpc itself keeps
	// that to itself until a call is made.
	dialErr error
}

// Connect prepares connections to endpoints, host:port. The timeout is that of
// one question over all of them, positive. It dials nothing yet.
func Connect(endpoints []string, timeout time.Duration) (*Nodes, error) {
	if timeout <= 0 {
		return nil, exit.Usagef("--timeout %s is not positive", timeout)
	}
	n := &Nodes{timeout: timeout}
	for _, addr := range endpoints {
		addr = strings.TrimSpace(addr)
		if err := netaddr.Check("--endpoints", addr); err != nil {
			return nil, err
		}
		n.list = append(n.list, &endpoint{addr: addr})
	}
	if len(n.list) == 0 {
		return nil, exit.Usagef("--endpoints is empty: name at least one node, host:port")
	}
	for _, e := range n.list {
		if err := e.open(); err != nil {
			n.Close()
			return nil, fmt.Errorf("connect to %s: %w", e.addr, err)
		}
	}
	return n, nil
}

// Wait lets every question take so much longer at the node that has it: it holds
// the question for so long.
func (n *Nodes) Wait(d time.Duration) { n.wait = d }

func (e *endpoint) open() error {
	dialer := &net.Dialer{}
	conn, err := grpc.NewClient("passthrough:///"+e.addr,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			c, err := dialer.DialContext(ctx, "tcp", addr)
			e.mu.Lock()
			e.dialErr = err
			e.mu.Unlock()
			return c, err
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(largestAnswer)),
		// A watch has no deadline: without keepalive it would outlive a frozen
		// node for ever.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 20 * time.Second, Timeout: 5 * time.Second}),
		grpc.WithDisableServiceConfig(),
	)
	e.conn = conn
	return err
}

// Close closes the connections.
func (n *Nodes) Close() {
	for _, e := range n.list {
		if e.conn != nil {
			_ = e.conn.Close()
		}
	}
}

// unreachable says that an endpoint gave no connection: it was not asked.
type unreachable struct {
	addr string
	err  error
}

func (u *unreachable) Error() string { return fmt.Sprintf("%s: %s", u.addr, u.err) }
func (u *unreachable) Unwrap() error { return u.err }

// Do asks until a node answers, the timeout is over, or asking again would not
// be safe.
func (n *Nodes) Do(parent context.Context, q Question) error {
	ctx, cancel := context.WithTimeout(parent, n.timeout+n.wait)
	defer cancel()
	all := &attempts{timeout: n.timeout + n.wait, kind: q.Kind}
	for {
		again, err := n.round(ctx, q, all)
		if err == nil || !again {
			return err
		}
		select {
		case <-time.After(roundPause):
		case <-ctx.Done():
		}
		if parent.Err() != nil {
			return errInterrupted
		}
		if ctx.Err() != nil {
			return all.failed()
		}
	}
}

// round asks every endpoint once. again says that another round may have more
// luck: dead endpoints don't come back within a timeout, and a node without a
// majority says so at once, but an election is worth waiting for, and so is the
// answer to what may have happened.
func (n *Nodes) round(ctx context.Context, q Question, all *attempts) (again bool, err error) {
	for i, e := range n.list {
		err := e.ask(ctx, part(ctx, len(n.list)-i, n.wait), n.wait, q)
		if err == nil {
			return false, nil
		}
		fate := fateOf(err)
		if errors.Is(ctx.Err(), context.Canceled) {
			return false, interrupted(q.Kind, fate)
		}
		if fate == decided {
			return false, err
		}
		all.add(e.addr, fate, err)
		if fate == unknown && q.Kind == Once || ctx.Err() != nil {
			return false, all.failed()
		}
		again = again || fate == electing || fate == unknown
	}
	return again, all.failed()
}

var errInterrupted = errors.New("interrupted before there was an answer")

// interrupted is the error of a question that the asker gave up.
func interrupted(kind Kind, f fate) error {
	if kind != Read && f == unknown {
		return &OutcomeUnknownError{errInterrupted.Error() + ", and it may have happened"}
	}
	return errInterrupted
}

// First connects to the first endpoint that lets it, each within its part of
// the timeout. It is for calls that stay with one node.
func (n *Nodes) First(parent context.Context) (conn grpc.ClientConnInterface, addr string, err error) {
	ctx, cancel := context.WithTimeout(parent, n.timeout)
	defer cancel()
	all := &attempts{timeout: n.timeout, kind: Read}
	for i, e := range n.list {
		bounded, done := context.WithTimeout(ctx, part(ctx, len(n.list)-i, 0))
		err := e.ready(bounded)
		done()
		if err == nil {
			return e.conn, e.addr, nil
		}
		if parent.Err() != nil {
			return nil, "", errInterrupted
		}
		all.add(e.addr, notAsked, &unreachable{addr: e.addr, err: err})
	}
	return nil, "", all.failed()
}

// part is how long one endpoint may take when `left` endpoints share what is
// left of the timeout, but for what a node may hold the question.
func part(ctx context.Context, left int, wait time.Duration) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return leastPart
	}
	return max((time.Until(deadline)-wait)/time.Duration(left), leastPart)
}

// ask connects within the part and asks. A question that can't be repeated
// gets all the time that is left, since no other endpoint could be asked after
// this one; one that can has to be done within the part and what the node may hold
// it.
func (e *endpoint) ask(ctx context.Context, share, wait time.Duration, q Question) error {
	bounded, cancel := context.WithTimeout(ctx, share)
	defer cancel()
	if err := e.ready(bounded); err != nil {
		return &unreachable{addr: e.addr, err: err}
	}
	if q.Kind == Once {
		return q.Call(ctx, e.conn)
	}
	held, done := context.WithTimeout(ctx, share+wait)
	defer done()
	return q.Call(held, e.conn)
}

// ready waits for a connection. A frozen process accepts one in its kernel but
// never greets; that ends with the context as well.
func (e *endpoint) ready(ctx context.Context) error {
	for {
		state := e.conn.GetState()
		switch state {
		case connectivity.Ready:
			return nil
		case connectivity.Idle:
			e.conn.Connect()
		case connectivity.TransientFailure:
			return e.dialFailure()
		case connectivity.Connecting, connectivity.Shutdown:
		}
		if !e.conn.WaitForStateChange(ctx, state) {
			return errors.New("could not connect in time")
		}
	}
}

func (e *endpoint) dialFailure() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.dialErr == nil {
		return errors.New("it closed the connection before it spoke gRPC: " +
			"it may have too many connections, or be no node's --grpc")
	}
	var op *net.OpError
	if errors.As(e.dialErr, &op) && op.Err != nil {
		return op.Err
	}
	return e.dialErr
}
