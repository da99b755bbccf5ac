package authority

import (
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/client/failopen"
	"github.com/quorlease/quorlease/client/members"
	"github.com/quorlease/quorlease/client/session"
)

// next says what becomes of a question after an error.
type next int

const (
	// finish: the error is the answer.
	finish next = iota
	// again: ask another node at once.
	again
	// later: ask after a pause.
	later
	// giveUp: nobody is going to answer.
	giveUp
)

// minority keeps in mind that a node is on the wrong side of a partition.
func (q *Question) minority(node members.Endpoint) {
	if q.refused == nil {
		q.refused = make(map[string]bool)
	}
	q.lost = q.refused[node.Address] && !q.elects
	q.refused[node.Address] = true
}

// try keeps in mind that a node was asked in vain.
func (q *Question) try(node members.Endpoint) {
	if q.tried == nil {
		q.tried = make(map[string]bool)
	}
	q.tried[node.Address] = true
}

// judge says how to go on after an error, and observes what it tells about the
// authority.
func (a *Authority) judge(q *Question, err error) next {
	if errors.Is(err, members.ErrClosed) {
		return again
	}
	if errors.Is(err, members.ErrUnreachable) {
		q.heard = true
		a.observe(time.Now(), failopen.Unreachable)
		return giveUp
	}
	switch session.Reason(err) {
	case "NO_LEADER":
		if q.Anyone && a.members.Others(q.tried) {
			return again
		}
		q.tried = nil
		q.elects = true
		return a.leaderless(q)
	case "NO_QUORUM":
		return a.judgeMinority(q)
	case "OVERLOADED", "DISK_LOW":
		return later
	case "SHUTTING_DOWN":
		return again
	}
	if session.MayHaveHappened(err) {
		if isAnswer(err) {
			return finish
		}
		if !q.Safe {
			return giveUp
		}
		return again
	}
	if errors.Is(err, session.ErrUnsent) {
		return again
	}
	a.observe(time.Now(), failopen.Answered)
	return finish
}

// leaderless: a majority elects a leader.
func (a *Authority) leaderless(q *Question) next {
	q.heard = true
	a.observe(time.Now(), failopen.NoLeader)
	return later
}

// judgeMinority: a node that sees no majority may be the only one. When nobody
// says otherwise it is true.
func (a *Authority) judgeMinority(q *Question) next {
	if !q.lost && len(q.refused) < len(a.members.All()) {
		if q.elects {
			return a.leaderless(q)
		}
		return again
	}
	q.heard = true
	a.observe(time.Now(), failopen.NoQuorum)
	return giveUp
}

// isAnswer says whether an error of which it is unknown whether it happened is
// an answer nevertheless, because to ask anybody again would give the same.
func isAnswer(err error) bool {
	switch status.Code(err) {
	case codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.PermissionDenied,
		codes.Unauthenticated, codes.Unimplemented, codes.FailedPrecondition, codes.OutOfRange:
		return !errors.Is(err, session.ErrEnded)
	default:
		return false
	}
}

// errNonsense: a node has answered something that is no answer to what it was
// asked. It is as good as silence, and held against the node.
var errNonsense = errors.New("the node's answer is none to what it was asked")

// answers says whether what came back can be an answer to what was asked: a
// decision with what belongs to it, or the outcome of the same operation.
func answers(answer *quorleasev1.ResponseItem, item *quorleasev1.RequestItem) bool {
	switch asked := item.GetOperation().(type) {
	case *quorleasev1.RequestItem_Acquire:
		r := answer.GetAcquire()
		if r.GetDecision() != quorleasev1.Decision_GRANTED {
			return r.GetDecision() == quorleasev1.Decision_DENIED && len(r.GetDenials()) > 0
		}
		id := asked.Acquire.GetLeaseId()
		return r.GetLease() != nil && (id == "" || r.GetLease().GetId() == id)
	case *quorleasev1.RequestItem_Settle:
		return answer.GetSettle() != nil
	case *quorleasev1.RequestItem_Release:
		return answer.GetRelease() != nil
	case *quorleasev1.RequestItem_Renew:
		return answer.GetRenew() != nil
	case *quorleasev1.RequestItem_Peek:
		return answer.GetPeek() != nil
	default:
		return true
	}
}
