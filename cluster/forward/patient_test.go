package forward_test

import (
	"errors"
	"testing"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/batch"
	"github.com/quorlease/quorlease/cluster/door"
	"github.com/quorlease/quorlease/cluster/outcome"
)

// sendPatient sends an acquire that may wait for a minute and has waited for ten
// seconds.
func (f *follower) sendPatient(t *testing.T, track bool) *waiter {
	t.Helper()
	w := &waiter{done: make(chan struct{})}
	w.Operation = &logv1.Operation{Kind: &logv1.Operation_Acquire{Acquire: &logv1.Acquire{
		LeaseId: make([]byte, 16), Track: track,
	}}}
	w.Size, _ = batch.Size(w.Operation)
	w.MaxWait, w.Since = time.Minute, time.Now().Add(-10*time.Second)
	w.Deadline, w.Owner = time.Now().Add(time.Minute), w
	if err := f.door.Admit(&w.Item); err != nil || !f.forwarder.Enqueue(&w.Item) {
		t.Fatalf("not taken: %v", err)
	}
	return w
}

// What waits knows for how long, at the leader too, and survives a stream that
// breaks where repeating it is harmless.
func TestT25WhoWaitsIsSentAgain(t *testing.T) {
	t.Parallel()
	arrived := make(chan *door.Item, 10)
	stranded := make(chan *door.Item, 10)
	l := &leader{
		submit: func(it *door.Item) { arrived <- it },
		cancel: func(it *door.Item) { stranded <- it },
	}
	f := newFollower(t, startLeader(t, l))
	tracked := f.sendPatient(t, true)
	it := <-arrived
	if waited := time.Since(it.Since); it.MaxWait < 59*time.Second || it.MaxWait > 61*time.Second ||
		waited < 9*time.Second || waited > 20*time.Second {
		t.Errorf("at the leader it may wait for %v and has waited for %v", it.MaxWait, waited)
	}
	untracked := f.sendPatient(t, false)
	<-arrived
	l.stop()
	untracked.wait(t)
	if !errors.Is(untracked.err, outcome.ErrUnknown) {
		t.Errorf("one that may have happened, and must not twice: %v", untracked.err)
	}
	select {
	case it := <-f.rerouted:
		if it != &tracked.Item || !it.Doubtful {
			t.Errorf("another one goes on, or it is certain that it did not happen: %+v", it)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("one that waits is lost with its leader")
	}
	for range 2 {
		<-stranded
	}
}
