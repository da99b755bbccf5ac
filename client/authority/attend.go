package authority

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/quorlease/quorlease/client/session"
)

// silentFor is for how long a node that is waited for may answer nobody at all.
const silentFor = 500 * time.Millisecond

// errSilent: that has passed. It is held against the node like a deadline.
var errSilent = fmt.Errorf("the node answers nobody: %w", context.DeadlineExceeded)

// attendant watches over one question whether its node answers anybody.
type attendant struct {
	session *session.Session
	cancel  context.CancelCauseFunc

	mu      sync.Mutex
	answers uint64
	timer   *time.Timer
	done    bool
}

// attend has a question end with errSilent once its node is silent, where another node can
// be asked the same and nobody waits in a queue: once, since one that is silent may be slow,
// and is not to be asked everything again and again; and no more often than every tenth
// answer pays for, since all of them may be slow. What any node may have has a shorter wait
// of its own. done is to be called when the question has ended.
func (a *Authority) attend(ctx context.Context, q *Question, s *session.Session) (_ context.Context, done func()) {
	if q.Anyone || !q.Safe || q.asked > 0 || !q.WaitsUntil.IsZero() ||
		!a.departures.Left() || len(a.members.All()) < 2 {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	t := &attendant{session: s, cancel: cancel, answers: s.Answers()}
	t.mu.Lock()
	t.timer = time.AfterFunc(silentFor, t.look)
	t.mu.Unlock()
	return ctx, t.end
}

func (t *attendant) look() {
	t.mu.Lock()
	defer t.mu.Unlock()
	answers := t.session.Answers()
	switch {
	case t.done:
	case answers == t.answers:
		t.cancel(errSilent)
	default:
		t.answers = answers
		t.timer.Reset(silentFor)
	}
}

func (t *attendant) end() {
	t.mu.Lock()
	t.done = true
	t.timer.Stop()
	t.mu.Unlock()
	t.cancel(nil)
}
