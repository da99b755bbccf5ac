package store

import (
	"fmt"
	"iter"
	"math"
)

// Never is the time of what is not due at all. It stays in the queue, so that
// the queue is also the list of its records.
const Never = math.MaxInt64

// Entry is what a queue orders.
type Entry[P any] interface {
	// Place is where the queue notes the entry's place, 0 for none.
	Place() *int32
	// Before decides between two entries that are due at the same time, so
	// that the order is that of the state and not of what happened to it.
	Before(P) bool
}

// Queue orders records by the time at which something has to happen to them. It
// is a heap with four children to a node; each record knows its place, so that it
// can be moved at once and is never in it twice.
type Queue[P Entry[P]] struct {
	nodes []node[P]
}

type node[P any] struct {
	at     int64
	record P
}

const children = 4

// Len is the number of records.
func (q *Queue[P]) Len() int { return len(q.nodes) }

// Top is the first record and when it is due; Never where there is none.
func (q *Queue[P]) Top() (record P, at int64) {
	if len(q.nodes) == 0 {
		return record, Never
	}
	return q.nodes[0].record, q.nodes[0].at
}

// Set puts the record into the queue or moves it.
func (q *Queue[P]) Set(record P, at int64) {
	place := record.Place()
	if *place == 0 {
		q.nodes = append(q.nodes, node[P]{at, record})
		*place = int32(len(q.nodes))
		q.up(len(q.nodes) - 1)
		return
	}
	i := q.check(record)
	earlier := at < q.nodes[i].at
	q.nodes[i].at = at
	if earlier {
		q.up(i)
		return
	}
	q.down(i)
}

// Remove takes the record out, if it is in.
func (q *Queue[P]) Remove(record P) {
	if *record.Place() == 0 {
		return
	}
	i := q.check(record)
	*record.Place() = 0
	last := len(q.nodes) - 1
	moved := q.nodes[last]
	q.nodes[last] = node[P]{}
	q.nodes = q.nodes[:last]
	if i == last {
		q.shrink()
		return
	}
	q.put(i, moved)
	q.up(i)
	q.down(int(*moved.record.Place()) - 1)
	q.shrink()
}

// At is when a record is due that is in the queue.
func (q *Queue[P]) At(record P) int64 { return q.nodes[q.check(record)].at }

// Renew puts a copy of a record into its place.
func (q *Queue[P]) Renew(record P) {
	if i := *record.Place(); i != 0 {
		q.nodes[i-1].record = record
	}
}

// All walks the records in no particular order.
func (q *Queue[P]) All() iter.Seq[P] {
	return func(yield func(P) bool) {
		for i := range q.nodes {
			if !yield(q.nodes[i].record) {
				return
			}
		}
	}
}

// Ascend walks the records in their order, with the time at which each is due. It
// does not put the queue in order: the first few cost as much as a few.
func (q *Queue[P]) Ascend() iter.Seq2[P, int64] {
	return func(yield func(P, int64) bool) {
		// The places that may come next; those below one come after it.
		next := ahead[P]{q: q}
		if len(q.nodes) > 0 {
			next.push(0)
		}
		for len(next.places) > 0 {
			i := next.pop()
			if !yield(q.nodes[i].record, q.nodes[i].at) {
				return
			}
			first := i*children + 1
			for c := first; c < min(first+children, len(q.nodes)); c++ {
				next.push(c)
			}
		}
	}
}

// ahead is a binary heap of places in a queue.
type ahead[P Entry[P]] struct {
	q      *Queue[P]
	places []int
}

func (a *ahead[P]) less(i, j int) bool {
	return a.q.less(a.q.nodes[a.places[i]], a.q.nodes[a.places[j]])
}

func (a *ahead[P]) push(place int) {
	a.places = append(a.places, place)
	for i := len(a.places) - 1; i > 0 && a.less(i, (i-1)/2); i = (i - 1) / 2 {
		a.places[i], a.places[(i-1)/2] = a.places[(i-1)/2], a.places[i]
	}
}

func (a *ahead[P]) pop() int {
	top, last := a.places[0], len(a.places)-1
	a.places[0] = a.places[last]
	a.places = a.places[:last]
	for i := 0; ; {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < last; c++ {
			if a.less(c, least) {
				least = c
			}
		}
		if least == i {
			return top
		}
		a.places[i], a.places[least] = a.places[least], a.places[i]
		i = least
	}
}

func (q *Queue[P]) check(record P) int {
	i := int(*record.Place()) - 1
	if i >= len(q.nodes) || q.nodes[i].record.Place() != record.Place() {
		panic(fmt.Sprintf("store: place %d of %d holds another record", i, len(q.nodes)))
	}
	return i
}

// shrink gives memory back when the queue has become much shorter.
func (q *Queue[P]) shrink() {
	if cap(q.nodes) > 1024 && len(q.nodes)*4 < cap(q.nodes) {
		q.nodes = append(make([]node[P], 0, len(q.nodes)*2), q.nodes...)
	}
}

func (q *Queue[P]) put(i int, n node[P]) {
	q.nodes[i] = n
	*n.record.Place() = int32(i + 1)
}

func (q *Queue[P]) less(a, b node[P]) bool {
	if a.at != b.at {
		return a.at < b.at
	}
	return a.record.Before(b.record)
}

func (q *Queue[P]) up(i int) {
	moving := q.nodes[i]
	for i > 0 {
		parent := (i - 1) / children
		if !q.less(moving, q.nodes[parent]) {
			break
		}
		q.put(i, q.nodes[parent])
		i = parent
	}
	q.put(i, moving)
}

func (q *Queue[P]) down(i int) {
	moving := q.nodes[i]
	for {
		first := i*children + 1
		if first >= len(q.nodes) {
			break
		}
		least := first
		for c := first + 1; c < min(first+children, len(q.nodes)); c++ {
			if q.less(q.nodes[c], q.nodes[least]) {
				least = c
			}
		}
		if !q.less(q.nodes[least], moving) {
			break
		}
		q.put(i, q.nodes[least])
		i = least
	}
	q.put(i, moving)
}
