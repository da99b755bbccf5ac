package shares

import (
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/store"
)

// Book has the entries of all limits.
type Book struct {
	table *store.Table[ID, Entry, *Entry]
	due   store.Queue[*Entry]
	// pools follow from the entries.
	pools map[string]*pool
	// outages are those of limits that keys may still have to live through.
	outages map[string][]Outage
	sum     uint64
}

// pool sums up the entries of one limit.
type pool struct {
	sessions int
	// promised is the sum of the largest promises, at most Whole.
	promised int64
}

// bookShards is how many shards the table has.
const bookShards = 256

// New is an empty book.
func New() *Book {
	return &Book{
		table: store.NewTable[ID, Entry](bookShards),
		pools: make(map[string]*pool), outages: make(map[string][]Outage),
	}
}

// Len is the number of entries.
func (b *Book) Len() int { return b.table.Len() }

// Sessions is the number of sessions that share a limit, and what of it is promised to
// them together, in parts per million.
func (b *Book) Sessions(limit string) (sessions int, promised int64) {
	if p := b.pools[limit]; p != nil {
		return p.sessions, p.promised
	}
	return 0, 0
}

// Refresh hears of a session at now, which holds a version, and returns what it is
// promised: none where there are as many sessions as may be.
func (b *Book) Refresh(now bucket.Instant, id ID, held uint64) Promise {
	e := b.table.Find(id)
	if e == nil {
		if sessions, _ := b.Sessions(id.Limit); b.Len() >= MaxEntries || sessions >= MaxSessions {
			return Promise{}
		}
		e = b.add(&Entry{ID: id})
	}
	e = b.change(e)
	e.heard = now
	e.holds(held)
	if next := b.next(e); len(e.promises) == 0 || next != e.newest().PPM && len(e.promises) < maxPromises {
		e.promise(held, next)
	}
	b.changed(e)
	return e.newest()
}

// next is what a session would be promised: an equal part, as far as the others leave
// it. What is counted of them is the most that each may be using. The entry is not
// counted.
func (b *Book) next(e *Entry) int64 {
	sessions, others := b.Sessions(e.ID.Limit)
	return max(0, min(Whole/int64(sessions+1), Whole-others))
}

// Stale says whether refreshing a session that is known, and holds a version, would
// change what is promised to it or to others.
func (b *Book) Stale(id ID, held uint64) bool {
	e := b.table.Find(id)
	if e == nil {
		return false
	}
	newest := e.newest().Version
	if held <= newest && e.promises[0].Version < held {
		return true
	}
	sessions, promised := b.Sessions(id.Limit)
	next := max(0, min(Whole/int64(sessions), Whole-promised+e.largest()))
	return next != e.newest().PPM && len(e.promises) < maxPromises
}

// Leave forgets a session that uses its share no more.
func (b *Book) Leave(id ID) {
	if e := b.table.Find(id); e != nil {
		b.remove(e)
	}
}

// Forget forgets sessions that were not heard of for Hold, at most as many.
func (b *Book) Forget(now bucket.Instant, most int) {
	for range most {
		e, at := b.due.Top()
		if at > int64(now) {
			return
		}
		b.remove(e)
	}
}

// Earned is what outages left to a session, in nanoseconds of the whole rate, and how
// much of that it can account for no more. Both only grow while the session is known.
func (b *Book) Earned(id ID) (earned, lapsed int64) {
	if e := b.table.Find(id); e != nil {
		return e.earned, e.lapsed
	}
	return 0, 0
}

// add takes an entry in, which is then to be changed.
func (b *Book) add(e *Entry) *Entry {
	b.table.Insert(e)
	b.changed(e)
	return e
}

// change returns the entry to change, which counts nowhere until it was changed.
func (b *Book) change(e *Entry) *Entry {
	own := b.table.Own(e)
	if own != e {
		b.due.Renew(own)
	}
	b.uncount(own)
	return own
}

// changed lets an entry count again.
func (b *Book) changed(e *Entry) {
	p := b.pools[e.ID.Limit]
	if p == nil {
		p = &pool{}
		b.pools[e.ID.Limit] = p
	}
	p.sessions++
	p.promised += e.largest()
	e.digest = e.sum()
	b.sum += e.digest
	b.due.Set(e, e.due())
}

func (b *Book) uncount(e *Entry) {
	p := b.pools[e.ID.Limit]
	p.sessions--
	p.promised -= e.largest()
	if p.sessions == 0 {
		delete(b.pools, e.ID.Limit)
	}
	b.sum -= e.digest
}

func (b *Book) remove(e *Entry) {
	b.uncount(e)
	b.due.Remove(e)
	b.table.Remove(e)
}
