package charge

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// timetable says when leases are to be renewed, or told of once more. It is safe for
// concurrent use.
type timetable struct {
	mu   sync.Mutex
	heap byDue
	wake chan struct{}
}

func newTimetable() *timetable { return &timetable{wake: make(chan struct{}, 1)} }

// set has something done with a lease at due: a renewal of one whose call goes on, or else
// what its end asks for.
func (t *timetable) set(l *lease, due time.Duration, done bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l.done != done {
		return
	}
	l.due = due
	heap.Push(&t.heap, l)
	if l.at == 0 {
		select {
		case t.wake <- struct{}{}:
		default:
		}
	}
}

// end takes a lease whose call has ended out of it.
func (t *timetable) end(l *lease) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l.done = true
	if l.at >= 0 {
		heap.Remove(&t.heap, l.at)
	}
}

func (t *timetable) isDone(l *lease) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return l.done
}

// next is a job that is due. Where there is none its lease is nil, and nothing will be due
// for so long.
func (t *timetable) next(now time.Duration) (job, time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case len(t.heap) == 0:
		return job{}, time.Hour
	case t.heap[0].due > now:
		return job{}, t.heap[0].due - now
	}
	l := heap.Pop(&t.heap).(*lease)
	return job{lease: l, renew: !l.done}, 0
}

// run hands out what is due until ctx ends.
func (t *timetable) run(ctx context.Context, clock func() time.Duration, hand func(job)) {
	for {
		j, wait := t.next(clock())
		if j.lease != nil {
			hand(j)
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-t.wake:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// untold takes out those whose calls have ended, and forgets the others.
func (t *timetable) untold() (list []*lease) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.heap {
		if l.at = -1; l.done {
			list = append(list, l)
		}
	}
	t.heap = nil
	return list
}

// byDue is a heap.
type byDue []*lease

// Len, Less, Swap, Push and Pop are heap.Interface.
func (h byDue) Len() int           { return len(h) }
func (h byDue) Less(i, j int) bool { return h[i].due < h[j].due }
func (h byDue) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

func (h *byDue) Push(x any) {
	l := x.(*lease)
	l.at = len(*h)
	*h = append(*h, l)
}

func (h *byDue) Pop() any {
	old := *h
	l := old[len(old)-1]
	old[len(old)-1] = nil
	*h, l.at = old[:len(old)-1], -1
	return l
}
