package door

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/outcome"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// waiter is an operation that notes its answers.
type waiter struct {
	Item
	answers atomic.Int64
	result  *logv1.Result
	err     error
}

func newWaiter(deadline time.Time) *waiter {
	w := &waiter{}
	w.Deadline, w.Owner = deadline, w
	return w
}

func (w *waiter) require(t *testing.T, want error) {
	t.Helper()
	if n := w.answers.Load(); n != 1 || !errors.Is(w.err, want) || (w.err == nil) != (want == nil) {
		t.Fatalf("%d answers, the last %v, want one: %v", n, w.err, want)
	}
}

func testDoor(most int) *Door {
	return New(most, most)
}

// Answer implements Owner.
func (w *waiter) Answer(r *logv1.Result, err error) {
	w.result, w.err = r, err
	w.answers.Add(1)
}

// propose marks ps as proposed.
func propose(d *Door, ps ...*Item) {
	d.Claim(ps, nil, func(*Item) bool { return true })
}

func TestR1DeadlinesAreTheDoorsOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := testDoor(10)
		stop := make(chan struct{})
		var sweeper sync.WaitGroup
		sweeper.Go(func() { d.Sweep(stop) })
		start := time.Now()
		waits, sent := newWaiter(start.Add(time.Second)), newWaiter(start.Add(2*time.Second))
		patient := newWaiter(start.Add(time.Hour))
		for _, w := range []*waiter{waits, sent, patient} {
			if err := d.Admit(&w.Item); err != nil {
				t.Fatal(err)
			}
		}
		propose(d, &sent.Item)
		<-time.After(time.Second + SweepEvery)
		synctest.Wait()
		waits.require(t, outcome.ErrDeadlineWaiting)
		if outcome.MayHaveHappened(waits.err) {
			t.Error("an operation that was not proposed may have happened")
		}
		<-time.After(time.Second)
		synctest.Wait()
		sent.require(t, outcome.ErrDeadlineProposed)
		if !outcome.MayHaveHappened(sent.err) || !errors.Is(sent.err, outcome.ErrDeadline) {
			t.Errorf("a proposed operation ended with %v", sent.err)
		}
		// The result that comes later finds nobody.
		d.Answer(&sent.Item, &logv1.Result{}, nil)
		sent.require(t, outcome.ErrDeadlineProposed)
		d.Answer(&patient.Item, &logv1.Result{}, nil)
		patient.require(t, nil)
		close(stop)
		sweeper.Wait()
	})
}

func TestG10DoorIsBounded(t *testing.T) {
	t.Parallel()
	d := testDoor(2)
	var in []*waiter
	for range 2 {
		w := newWaiter(time.Now().Add(time.Hour))
		if err := d.Admit(&w.Item); err != nil {
			t.Fatal(err)
		}
		in = append(in, w)
	}
	err := d.Admit(&newWaiter(time.Time{}).Item)
	if !errors.Is(err, outcome.ErrOverloaded) || outcome.MayHaveHappened(err) {
		t.Fatalf("got %v, want %v", err, outcome.ErrOverloaded)
	}
	d.Answer(&in[0].Item, nil, outcome.ErrNoLeader)
	if err := d.Admit(&newWaiter(time.Time{}).Item); err != nil {
		t.Fatalf("no room after an answer: %v", err)
	}
}

func TestCancelAndClose(t *testing.T) {
	t.Parallel()
	d := testDoor(10)
	waits, sent := newWaiter(time.Time{}), newWaiter(time.Time{})
	left, last := newWaiter(time.Time{}), newWaiter(time.Time{})
	for _, w := range []*waiter{waits, sent, left, last} {
		if err := d.Admit(&w.Item); err != nil {
			t.Fatal(err)
		}
	}
	propose(d, &sent.Item, &last.Item)
	d.Cancel(&waits.Item)
	waits.require(t, context.Canceled)
	d.Cancel(&sent.Item)
	sent.require(t, outcome.ErrUnknown)
	d.Close(outcome.ErrClosed)
	left.require(t, outcome.ErrClosed)
	if n := last.answers.Load(); n != 0 {
		t.Fatalf("a proposed operation was answered %v while its result may come", last.err)
	}
	if err := d.Admit(&newWaiter(time.Time{}).Item); !errors.Is(err, outcome.ErrClosed) {
		t.Fatalf("got %v, want %v", err, outcome.ErrClosed)
	}
	d.Abandon()
	last.require(t, outcome.ErrUnknown)
	for _, w := range []*waiter{waits, sent, left, last} {
		d.Cancel(&w.Item)
		d.Answer(&w.Item, nil, outcome.ErrNoLeader)
		if n := w.answers.Load(); n != 1 {
			t.Fatalf("%d answers", n)
		}
	}
	// One that was never let in has no answer to get.
	d.Cancel(&newWaiter(time.Time{}).Item)
}

// Whatever races, every operation is answered exactly once.
func TestDoorAnswersOnce(t *testing.T) {
	t.Parallel()
	d := testDoor(1000)
	ops := make([]*waiter, 500)
	for i := range ops {
		ops[i] = newWaiter(time.Now().Add(-time.Second))
		if err := d.Admit(&ops[i].Item); err != nil {
			t.Fatal(err)
		}
	}
	var racers sync.WaitGroup
	for _, race := range []func(){
		func() { d.expire(time.Now()) },
		func() {
			for _, w := range ops {
				d.Cancel(&w.Item)
			}
		},
		func() {
			for _, w := range ops {
				propose(d, &w.Item)
				d.Answer(&w.Item, &logv1.Result{}, nil)
			}
		},
		func() {
			ps := make([]*Item, len(ops))
			for i, w := range ops {
				ps[i] = &w.Item
			}
			d.AnswerAll(ps, make([]*logv1.Result, len(ps)))
		},
		func() { d.Abandon() },
	} {
		racers.Go(race)
	}
	racers.Wait()
	for i, w := range ops {
		if n := w.answers.Load(); n != 1 {
			t.Fatalf("operation %d has %d answers", i, n)
		}
	}
	if d.open != 0 {
		t.Fatalf("%d are still open", d.open)
	}
}
