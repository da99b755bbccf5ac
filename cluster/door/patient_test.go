package door

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorlease/quorlease/cluster/outcome"
)

// holder notes who was withdrawn.
type holder struct{ withdrawn atomic.Int64 }

// Withdraw implements Withdrawer.
func (h *holder) Withdraw(*Item) { h.withdrawn.Add(1) }

func patient(deadline time.Time) *waiter {
	w := newWaiter(deadline)
	w.MaxWait = time.Hour
	return w
}

// Those who wait in a queue and the others keep one another from nothing.
func TestG10PatientItemsAreCountedApart(t *testing.T) {
	t.Parallel()
	d := New(1, 2)
	later := time.Now().Add(time.Hour)
	for _, w := range []*waiter{patient(later), newWaiter(later), patient(later)} {
		if err := d.Admit(&w.Item); err != nil {
			t.Fatal(err)
		}
	}
	for _, w := range []*waiter{patient(later), newWaiter(later)} {
		if err := d.Admit(&w.Item); !errors.Is(err, outcome.ErrOverloaded) {
			t.Errorf("one too many with %v: %v", w.MaxWait, err)
		}
	}
	own := newWaiter(later)
	if !d.Enter(&own.Item) {
		t.Error("the node's own is kept out")
	}
	d.Close(outcome.ErrClosed)
	if d.Enter(&newWaiter(later).Item) {
		t.Error("a closed door let one in")
	}
	own.require(t, outcome.ErrClosed)
}

func TestHolderIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := New(10, 10)
		stop := make(chan struct{})
		go d.Sweep(stop)
		defer close(stop)
		var h holder
		start := time.Now()
		late, canceled, answered, last := patient(start.Add(time.Second)), patient(start.Add(time.Hour)),
			patient(start.Add(time.Hour)), patient(start.Add(2*time.Second))
		for _, w := range []*waiter{late, canceled, answered, last} {
			if err := d.Admit(&w.Item); err != nil || !d.Hold(&w.Item, &h) {
				t.Fatal(err)
			}
		}
		d.Cancel(&canceled.Item)
		canceled.require(t, outcome.ErrCanceledWaiting)
		if !d.Answer(&answered.Item, nil, nil) || d.Answer(&answered.Item, nil, nil) || d.Hold(&answered.Item, &h) {
			t.Error("answered twice, or held after")
		}
		<-time.After(time.Second + SweepEvery)
		synctest.Wait()
		late.require(t, outcome.ErrDeadlineWaiting)
		// Whoever answers knows it; the others are told.
		if n := h.withdrawn.Load(); n != 2 {
			t.Errorf("the holder was told of %d, want 2", n)
		}
		d.Claim([]*Item{&last.Item}, &h, func(*Item) bool { return true })
		<-time.After(time.Second)
		synctest.Wait()
		last.require(t, outcome.ErrDeadlineProposed)
	})
}

func TestRecall(t *testing.T) {
	t.Parallel()
	d := New(10, 10)
	waits, sent := newWaiter(time.Now().Add(time.Hour)), newWaiter(time.Now().Add(time.Hour))
	for _, w := range []*waiter{waits, sent} {
		if err := d.Admit(&w.Item); err != nil {
			t.Fatal(err)
		}
	}
	propose(d, &sent.Item)
	if !d.Recall(&waits.Item) || d.Recall(&sent.Item) {
		t.Error("one that waits can't be recalled, or one that was proposed can")
	}
	d.Abandon()
	if waits.answers.Load() != 0 {
		t.Error("one that was recalled was answered")
	}
	sent.require(t, outcome.ErrClosedProposed)
}
