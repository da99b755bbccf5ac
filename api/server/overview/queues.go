package overview

import (
	"context"
	"sync"
	"time"

	"github.com/quorlease/quorlease/cluster/queue"
)

const (
	// queuesEvery is how long what the leader said of its queues is good, queuesOld when
	// it is worth nothing any more.
	queuesEvery = time.Second
	queuesOld   = 3 * time.Second
	// queuesFirst is how long a picture waits for it where there is nothing better.
	queuesFirst = 100 * time.Millisecond
)

// queues are those of the leader. They are asked for beside the drawing: a leader
// that can't be reached must not hold up a picture.
type queues struct {
	node   Node
	ctx    context.Context //nolint:containedctx // it is not a call's, it ends with the hub
	cancel context.CancelFunc
	asking sync.WaitGroup

	mu struct {
		sync.Mutex
		closed bool
		// asked is when they were asked for last, answer is closed when that is answered.
		asked  time.Time
		answer chan struct{}
		// states are by limit, of when they were said.
		states map[string][]queue.ClassState
		said   time.Time
	}
}

func newQueues(node Node) *queues {
	q := &queues{node: node}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	return q
}

// of are the queues by limit, about a second old while somebody looks, and none where
// the leader has not said for a few seconds.
func (q *queues) of(ctx context.Context) map[string][]queue.ClassState {
	q.mu.Lock()
	old, answer := time.Since(q.mu.said) >= queuesOld, q.mu.answer
	if !q.mu.closed && time.Since(q.mu.asked) >= queuesEvery && isClosed(answer) {
		answer = make(chan struct{})
		q.mu.asked, q.mu.answer = time.Now(), answer
		q.asking.Go(func() { q.ask(answer) })
	}
	q.mu.Unlock()
	if old && answer != nil {
		timer := time.NewTimer(queuesFirst)
		defer timer.Stop()
		select {
		case <-answer:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if time.Since(q.mu.said) >= queuesOld {
		return nil
	}
	return q.mu.states
}

// isClosed says whether nobody is being asked.
func isClosed(answer chan struct{}) bool {
	if answer == nil {
		return true
	}
	select {
	case <-answer:
		return true
	default:
		return false
	}
}

func (q *queues) ask(answer chan struct{}) {
	defer close(answer)
	states := make(map[string][]queue.ClassState)
	for _, s := range q.node.Queues(q.ctx, "", "") {
		states[s.Place.Limit] = append(states[s.Place.Limit], s)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mu.states, q.mu.said = states, time.Now()
}

func (q *queues) close() {
	q.mu.Lock()
	q.mu.closed = true
	q.mu.Unlock()
	q.cancel()
	q.asking.Wait()
}
