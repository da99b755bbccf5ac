package clienttest

import (
	"time"

	"google.golang.org/protobuf/proto"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster"
)

// queue decides an acquire that may wait: where it is denied it is looked at again
// when the denial says, as long as it may wait. Nobody else has it.
func (n *node) queue(p *cluster.Pending) {
	n.cluster.mu.Lock()
	since, waited := n.waiting[p]
	n.cluster.mu.Unlock()
	now := time.Now()
	if !waited {
		since = now
	}
	op := proto.CloneOf(p.Operation)
	op.GetAcquire().Held = int64(now.Sub(since))
	result := n.cluster.commit(op)
	acquire := result.GetAcquire()
	left := since.Add(p.MaxWait).Sub(now)
	switch {
	case acquire == nil || acquire.GetGranted() || acquire.GetDenials()[0].GetRetryAfter() <= 0:
	case left <= 0:
		acquire.Denials[0].Reason = logv1.Reason_REASON_WAIT_EXPIRED
		waited = true
	default:
		n.again(p, since, min(left, time.Duration(acquire.GetDenials()[0].GetRetryAfter())))
		return
	}
	if waited && acquire != nil {
		acquire.Queue = &logv1.QueueStatus{Position: 1, Waited: int64(now.Sub(since))}
	}
	n.forget(p)
	p.Done(result, nil)
}

// again looks at p after wait.
func (n *node) again(p *cluster.Pending, since time.Time, wait time.Duration) {
	n.cluster.mu.Lock()
	defer n.cluster.mu.Unlock()
	n.waiting[p] = since
	n.pending[p] = time.AfterFunc(wait, func() {
		if n.takeWaiting(p) {
			n.answer(p)
		}
	})
}

// takeWaiting takes an acquire whose time has come. It says no where somebody else
// has done so.
func (n *node) takeWaiting(p *cluster.Pending) bool {
	n.cluster.mu.Lock()
	defer n.cluster.mu.Unlock()
	_, waits := n.pending[p]
	delete(n.pending, p)
	return waits
}

// forget: p has its answer.
func (n *node) forget(p *cluster.Pending) {
	n.cluster.mu.Lock()
	defer n.cluster.mu.Unlock()
	delete(n.waiting, p)
}
