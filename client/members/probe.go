package members

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/client/session"
)

// silencesMax is how many questions in a row a node may leave unanswered before
// the connection is given up. Its callers are sent elsewhere from the first one
// on; but those who wait for its answers should have them if it only paused.
const silencesMax = 4

// troubleFor is how long after a node was lost or doubted all are asked more
// often.
const troubleFor = 5 * time.Second

// probe is one question and what came of it.
type probe struct {
	// answers are what the session had received when it was asked.
	answers uint64
	told    *quorleasev1.ClusterStatusResponse
	err     error
}

// attendant asks a node for its status while its session lasts.
type attendant struct {
	link    *link
	conn    *grpc.ClientConn
	session *session.Session
	timer   *time.Timer
	// asked is when it was asked last.
	asked time.Time
	// found has room for the answer to the one question that is open, if pending.
	found   chan probe
	pending bool
	// hurried: somebody complained since it was asked.
	hurried  bool
	silences int
}

// attend returns when the session has ended, the node is silent for too long, or
// life ends. A session's end is noticed at once, also while a question is open.
func (l *link) attend(life context.Context, conn *grpc.ClientConn, s *session.Session) error {
	ctx, cancel := context.WithCancel(life)
	a := &attendant{link: l, conn: conn, session: s, asked: time.Now(), found: make(chan probe, 1)}
	a.timer = time.NewTimer(l.interval())
	defer func() {
		a.timer.Stop()
		cancel()
		if a.pending {
			<-a.found
		}
	}()
	for {
		select {
		case <-life.Done():
			return life.Err()
		case <-s.Ended():
			return s.Err()
		case <-l.kick:
			a.hurry()
		case <-a.timer.C:
			a.ask(ctx)
		case p := <-a.found:
			a.pending = false
			if err := a.learn(p); err != nil { //nolint:contextcheck // what is learnt outlives the connection
				return err
			}
			a.timer.Reset(l.interval())
		}
	}
}

// interval is how long to wait before the next question.
func (l *link) interval() time.Duration {
	m := l.members
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if l.failed || l.leaderlessLocked() || l.doubt.After(now) || now.Sub(m.trouble) < troubleFor {
		soon := m.config.ProbeSoon
		return soon + time.Duration(rand.Int64N(int64(soon)))
	}
	every := m.config.ProbeEvery
	return every + time.Duration(rand.Int64N(int64(every)*3/2))
}

// hurry asks at once, but no more often than ProbeSoon however many complain, and
// not at the same moment as every other client that lost the same node.
func (a *attendant) hurry() {
	if a.pending || a.hurried {
		return
	}
	a.hurried = true
	soon := a.link.members.config.ProbeSoon
	a.timer.Reset(max(time.Until(a.asked.Add(soon)), time.Duration(rand.Int64N(int64(soon)/4))))
}

func (a *attendant) ask(ctx context.Context) {
	if a.pending {
		return
	}
	a.pending, a.hurried, a.asked = true, false, time.Now()
	answers := a.session.Answers()
	ctx, cancel := context.WithTimeout(ctx, a.link.members.config.ProbeMax)
	go func() {
		defer cancel()
		told, err := ask(ctx, a.conn)
		a.found <- probe{answers, told, err}
	}()
}

// learn says why the connection should be given up, if it should.
func (a *attendant) learn(p probe) error {
	switch {
	case p.err == nil:
	case !errors.Is(p.err, context.DeadlineExceeded):
		return p.err
	case a.session.Answers() == p.answers:
		a.link.silent()
		if a.silences++; a.silences >= silencesMax {
			return errSilent
		}
		return nil
	}
	// It told, or it is too busy to tell but not to answer others.
	a.silences = 0
	a.link.told(p.told)
	return nil
}
