package stage

import "time"

// event is something that is to happen.
type event struct {
	host    *Host
	process uint64
	do      func()
	// from is who sent it over network, which may have been cut until it arrives.
	// Both are nil where it was not sent.
	from    *Host
	network *Network
}

// due says when an event is to happen. Events lie elsewhere: what is moved about in
// the heap holds no pointers.
type due struct {
	at     time.Duration
	serial uint64
	event  int
}

func (d due) before(other due) bool {
	return d.at < other.at || d.at == other.at && d.serial < other.serial
}

// branches is how many children a node of the heap has.
const branches = 4

// queue is a heap by time; what is due at one time happens in the order in which
// it was asked for.
type queue struct {
	serial uint64
	heap   []due
	events []event
	free   []int
}

func (q *queue) push(at time.Duration, e event) {
	q.serial++
	d := due{at: at, serial: q.serial, event: len(q.events)}
	if last := len(q.free) - 1; last >= 0 {
		d.event = q.free[last]
		q.free = q.free[:last]
		q.events[d.event] = e
	} else {
		q.events = append(q.events, e)
	}
	q.heap = append(q.heap, d)
	i := len(q.heap) - 1
	for i > 0 {
		parent := (i - 1) / branches
		if !d.before(q.heap[parent]) {
			break
		}
		q.heap[i] = q.heap[parent]
		i = parent
	}
	q.heap[i] = d
}

// pop takes the first out. There must be one.
func (q *queue) pop() (time.Duration, event) {
	first := q.heap[0]
	last := len(q.heap) - 1
	d := q.heap[last]
	q.heap = q.heap[:last]
	if last > 0 {
		q.sink(d)
	}
	e := q.events[first.event]
	q.events[first.event] = event{}
	q.free = append(q.free, first.event)
	return first.at, e
}

// sink puts d where the root was, or below.
func (q *queue) sink(d due) {
	i := 0
	for {
		least := branches*i + 1
		if least >= len(q.heap) {
			break
		}
		for child := least + 1; child < min(branches*i+branches+1, len(q.heap)); child++ {
			if q.heap[child].before(q.heap[least]) {
				least = child
			}
		}
		if !q.heap[least].before(d) {
			break
		}
		q.heap[i] = q.heap[least]
		i = least
	}
	q.heap[i] = d
}
