// Package slots ties slots to the session that asked for them: they come back when
// it ends.
package slots

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster"
	"github.com/quorlease/quorlease/fsm"
)

// dimension is that of slots.
const dimension = "slots"

// Ending has a time: slots come back by themselves when their leases end.
const (
	endWithin = 10 * time.Second
	endAgain  = 200 * time.Millisecond
)

// Node carries out operations.
type Node interface {
	// Do waits for the result. A refusal is a *fsm.Refused.
	Do(ctx context.Context, op *logv1.Operation, attempt uint32) (*logv1.Result, error)
	// Submit does not wait; it calls Done once.
	Submit(p *cluster.Pending)
}

// Session is one connection of a client's session.
type Session struct {
	// ID has 16 bytes.
	ID []byte
	// Owner is the credential that holds it.
	Owner string
	// Connection is higher than those of the connections before it.
	Connection uint64
	// Grace is how long its slots stay taken when it has ended.
	Grace time.Duration
}

// Tie is what one connection of a session has done with slots. It is safe for
// concurrent use.
type Tie struct {
	session Session
	node    Node
	// used: slots may be tied to the session.
	used atomic.Bool
}

// New makes the tie of a connection. Where it is not the first of its session it
// says that the session is back, so that the slots that it holds stay taken. Nothing
// waits for that: what was lost is said again by the next acquire or renewal.
func New(node Node, session Session) *Tie {
	t := &Tie{session: session, node: node}
	if session.Connection > 1 {
		t.used.Store(true)
		node.Submit(&cluster.Pending{
			Operation: t.operation(&logv1.EndSession{Resumed: true}), Done: func(*logv1.Result, error) {},
		})
	}
	return t
}

func (t *Tie) operation(op *logv1.EndSession) *logv1.Operation {
	op.Session, op.Owner, op.Connection = t.session.ID, t.session.Owner, t.session.Connection
	return &logv1.Operation{Kind: &logv1.Operation_EndSession{EndSession: op}}
}

// Acquire ties an acquire to the session, if it asks for slots that can be held.
func (t *Tie) Acquire(op *logv1.Acquire) {
	if op.GetTrack() && slices.ContainsFunc(op.GetCharges(), isSlots) {
		t.used.Store(true)
		op.Session, op.Connection = t.session.ID, t.session.Connection
	}
}

func isSlots(c *logv1.Charge) bool { return c.GetDimension() == dimension }

// Renew lets a renewal say that the session is there.
func (t *Tie) Renew(op *logv1.Renew) { op.Session, op.Connection = t.session.ID, t.session.Connection }

// End says that the connection has ended, if slots may be tied to it. They come back
// after the grace, unless the client comes back before over another connection: the
// end of an older one does nothing. It waits until that is committed. A node that
// drains ends no session: its clients are there, and go to other nodes.
func (t *Tie) End(ctx context.Context, draining bool) {
	if !t.used.Load() || draining {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWithin)
	defer cancel()
	op := t.operation(&logv1.EndSession{Grace: int64(t.session.Grace)})
	again := time.NewTicker(endAgain)
	defer again.Stop()
	for {
		// A repetition is harmless. What was refused would be refused again.
		_, err := t.node.Do(ctx, op, 0)
		var refused *fsm.Refused
		if err == nil || errors.As(err, &refused) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		}
	}
}
