// Package lineup holds what waits for the next log entry, while this node leads.
package lineup

import (
	"slices"
	"sync"

	"github.com/quorlease/quorlease/cluster/batch"
	"github.com/quorlease/quorlease/cluster/door"
)

// Line is what waits, in order of arrival. Safe for concurrent use.
type Line struct {
	door *door.Door
	// most is how many wait before those are forgotten that were answered meanwhile.
	most int

	mu sync.Mutex
	// queue may hold operations that were answered meanwhile.
	queue []*door.Item
	// term is the term in which this node serves, 0 while it doesn't.
	term uint64
}

// New returns a line that lets nothing in.
func New(d *door.Door, most int) *Line { return &Line{door: d, most: most} }

// Serve lets operations in: this node leads in term, its Barrier has passed and
// its clock counts on alone.
func (l *Line) Serve(term uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.term = term
}

// Drop lets nothing in any more and returns what waits. A queue must not survive its
// leadership: the waiters would be revived when the node is elected again (T25).
func (l *Line) Drop() []*door.Item {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue := l.queue
	l.term, l.queue = 0, nil
	return queue
}

// Term is the term in which this node serves as the leader, 0 while it doesn't.
func (l *Line) Term() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.term
}

// Add takes items for the next entry, one right behind the other. It returns false,
// and takes none, when this node does not serve as the leader.
func (l *Line) Add(items ...*door.Item) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.term == 0 {
		return false
	}
	l.queue = append(l.queue, items...)
	if len(l.queue) > l.most {
		// Only a proposer that hangs lets so much pile up.
		l.queue = l.door.StillWaiting(l.queue)
	}
	return true
}

// Next takes the operations of the next entry, and says in which term. They are
// proposed from now on.
func (l *Line) Next() (*batch.Batch[*door.Item], uint64) {
	b := &batch.Batch[*door.Item]{}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.term == 0 {
		return b, 0
	}
	taken := l.door.Claim(l.queue, nil, func(it *door.Item) bool { return b.Add(it.Operation, it.Size, it) })
	l.queue = slices.Delete(l.queue, 0, taken)
	return b, l.term
}
