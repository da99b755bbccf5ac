package told

import (
	"container/list"
	"time"

	"github.com/quorlease/quorlease/client/feedback"
	"github.com/quorlease/quorlease/client/gateway/circuit"
)

// rank is in which order answers are told.
type rank int

// The ranks.
const (
	money rank = iota
	refusals
	headers
	ranks
)

// questions is the kind of what is only told for its answer.
const questions feedback.Kind = 0

func rankOf(kind feedback.Kind) rank {
	switch kind {
	case feedback.SpendCap:
		return money
	case feedback.Observed, questions:
		return headers
	default:
		return refusals
	}
}

// place is what equal answers have in common.
type place struct {
	// subject is whom they are about, spelled so that no two are the same.
	subject string
	kind    feedback.Kind
}

// entry is one answer, or what several equal ones say together. The Teller's lock guards
// it.
type entry struct {
	place place
	rank  rank
	// answer is what is told, but for its wait, which is until.
	answer feedback.Answer
	until  time.Duration
	// circuit is whose pause the authority's answer speaks of.
	circuit circuit.Key
	// notice: a circuit has opened. It is told unless the authority holds it closed as long.
	notice bool
	// came is when the newest of them came, due from when on it may be told, and sent when
	// it was told last.
	came, due, sent time.Duration
	// at is its place among those that wait or were told, nil while it is being told. again:
	// more came meanwhile.
	at    *list.Element
	waits bool
	again bool
}

// merge adds what another answer says. Its wait can only be longer than what was said.
func (e *entry) merge(now, until time.Duration, a feedback.Answer) {
	e.came = now
	e.until = max(e.until, until)
	if a.Remaining != nil {
		e.answer.Remaining = a.Remaining
	}
	if a.Reason != "" {
		e.answer.Reason = a.Reason
	}
}

// queue is the answers that wait to be told, and those that were told a moment ago.
type queue struct {
	most    int
	byPlace map[place]*entry
	waiting [ranks]list.List
	told    list.List
}

func newQueue(most int) *queue { return &queue{most: most, byPlace: make(map[place]*entry)} }

// len is how many answers wait.
func (q *queue) len() (n int) {
	for i := range q.waiting {
		n += q.waiting[i].Len()
	}
	return n
}

// add makes an entry wait that is new. It is false where there is no room. lost is that
// which had to go and was not told, itself or another one.
func (q *queue) add(e *entry) (ok bool, lost *entry) {
	if len(q.byPlace) >= q.most {
		victim := q.victim(e.rank)
		if victim == nil {
			return false, e
		}
		if victim.waits {
			lost = victim
		}
		q.remove(victim)
	}
	q.byPlace[e.place] = e
	q.wait(e)
	return true, lost
}

// victim is the entry that goes for one of a rank: what was told before what waits, and
// nothing for what counts less.
func (q *queue) victim(least rank) *entry {
	if first := q.told.Front(); first != nil {
		return first.Value.(*entry)
	}
	for r := headers; r >= least; r-- {
		if first := q.waiting[r].Front(); first != nil {
			return first.Value.(*entry)
		}
	}
	return nil
}

// take takes an entry out of the list that it is in.
func (q *queue) take(e *entry) {
	switch {
	case e.at == nil:
	case e.waits:
		q.waiting[e.rank].Remove(e.at)
	default:
		q.told.Remove(e.at)
	}
	e.at, e.waits = nil, false
}

// wait makes it wait behind the others of its rank.
func (q *queue) wait(e *entry) {
	q.take(e)
	e.at, e.waits = q.waiting[e.rank].PushBack(e), true
}

// back makes one that could not be told wait again, before the others.
func (q *queue) back(e *entry) {
	q.take(e)
	e.at, e.waits = q.waiting[e.rank].PushFront(e), true
}

// rest remembers that it was told.
func (q *queue) rest(e *entry, now time.Duration) {
	q.take(e)
	e.sent = now
	e.at = q.told.PushBack(e)
}

func (q *queue) remove(e *entry) {
	q.take(e)
	delete(q.byPlace, e.place)
}

// forget lets go of what was told so long ago that the next one is new.
func (q *queue) forget(before time.Duration) {
	for first := q.told.Front(); first != nil; first = q.told.Front() {
		e := first.Value.(*entry)
		if e.sent > before {
			return
		}
		q.remove(e)
	}
}

// pick takes at most n entries whose time has come, those of the higher rank first, and says
// when that of the next one is. drop says of which nothing is to be told any more.
func (q *queue) pick(
	now time.Duration, n int, due func(*entry) time.Duration, drop func(*entry) bool,
) (batch []*entry, next time.Duration) {
	next = never
	for r := range q.waiting {
		for at := q.waiting[r].Front(); at != nil && len(batch) < n; {
			e := at.Value.(*entry)
			at = at.Next()
			switch when := due(e); {
			case when > now:
				next = min(next, when)
			case drop(e):
				q.remove(e)
			default:
				q.take(e)
				batch = append(batch, e)
			}
		}
	}
	return batch, next
}
