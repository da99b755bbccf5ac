// Package atonce answers acquires of a session that need no log entry, in memory that
// is used again for the next one.
package atonce

import (
	"context"
	"time"

	"github.com/quorlease/quorlease/api/codec/items"
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server/convert"
	"github.com/quorlease/quorlease/api/server/sharing"
	"github.com/quorlease/quorlease/cluster"
	"github.com/quorlease/quorlease/cluster/escrow"
)

// Node answers what needs no entry.
type Node interface {
	sharing.Viewer
	// Grant keeps nothing of what it is given but texts; nil: it takes an entry.
	Grant(p *cluster.Pending, room *escrow.Room) *logv1.Result
}

// Desk is that of one session, for one goroutine. Each operation, result and answer is
// written over the one before it, so nothing of them may be kept.
type Desk struct {
	node Node
	// owner holds what is asked for, client is whom items ask for that do not say.
	owner, client string

	pending cluster.Pending
	// tried: the last one takes an entry, and its retry budget has ruled.
	tried   bool
	op      convert.Room
	room    escrow.Room
	answer  convert.AnswerRoom
	item    quorleasev1.ResponseItem
	acquire quorleasev1.ResponseItem_Acquire
}

// New is the desk of a session.
func New(node Node, owner, client string) *Desk {
	return &Desk{node: node, owner: owner, client: client}
}

// Answer appends the answer to a plain acquire that arrived at now to others, and says
// no where it takes an entry or is not as it should be: then it is to be submitted as
// others are, after Tried.
func (d *Desk) Answer(
	ctx context.Context, now time.Time, item *quorleasev1.RequestItem, to []byte,
) (answers []byte, ok bool, err error) {
	request := item.GetAcquire()
	d.tried = false
	d.pending = cluster.Pending{Attempt: request.GetAttempt(), Arrived: now, Operation: d.operation(item)}
	op := d.pending.Operation.GetAcquire()
	if op == nil {
		return to, false, nil
	}
	d.room.Clear()
	result := d.node.Grant(&d.pending, &d.room).GetAcquire()
	if result == nil {
		d.tried = true
		return to, false, nil
	}
	answer := d.answer.Acquire(op, result)
	answer.Fallbacks = sharing.Fallbacks(ctx, d.node, request.KnownRevision, op)
	d.acquire.Acquire = answer
	d.item.Seq, d.item.Answer = item.GetSeq(), &d.acquire
	answers, err = items.Append(to, &d.item)
	return answers, true, err
}

// operation is what an item asks for, nil where it is not as it should be.
func (d *Desk) operation(item *quorleasev1.RequestItem) *logv1.Operation {
	_, wrong := convert.Patience(item, 0)
	op, bad := d.op.Acquire(item.GetAcquire(), d.owner)
	if wrong != nil || bad != nil {
		return nil
	}
	if acquire := op.GetAcquire(); acquire.GetClient() == "" {
		acquire.Client = d.client
	}
	return op
}

// Tried says once whether Answer said no to the last item because it takes an entry. Its
// client's retry budget holds room for it until p, which is to be submitted for it, is
// answered.
func (d *Desk) Tried(p *cluster.Pending) bool {
	tried := d.tried
	if d.tried = false; tried {
		p.Instead(&d.pending)
	}
	return tried
}
