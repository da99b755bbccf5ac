// Package ledger keeps what nodes were given of buckets: which tokens, until when,
// and the highest sequence that each process was given any under. What asking,
// returning and paying mean is the business of package escrow; what the records do
// to keys is that of package state. It is pure.
package ledger

import (
	"slices"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/frames"
	"github.com/quorlease/quorlease/fsm/record"
	"github.com/quorlease/quorlease/fsm/store"
)

// shards is for up to a million records, as those of leases.
const shards = 4096

// Escrow is a record at work. It is replaced as a whole, so that it is not touched and
// sealed.
type Escrow struct {
	record.Escrow
	generation uint32
	place      int32
	digest     uint64
}

// Key, Generation and Clone are for the table, Place and Before for the queue.
func (e *Escrow) Key() record.EscrowID  { return e.ID }
func (e *Escrow) Generation() *uint32   { return &e.generation }
func (e *Escrow) Place() *int32         { return &e.place }
func (e *Escrow) Before(o *Escrow) bool { return e.ID.Compare(&o.ID) < 0 }

func (e *Escrow) Clone() *Escrow {
	c := *e
	return &c
}

// keyID names one key of one limit.
type keyID struct {
	limit uint32
	name  string
}

// Ledger is all of them. One caller changes it; others may read it while it doesn't.
type Ledger struct {
	escrows *store.Table[record.EscrowID, Escrow, *Escrow]
	due     store.Queue[*Escrow]
	// keys are the records of each key that has some, limits how many there are of each
	// limit. They follow from the records.
	keys   map[keyID][]*Escrow
	limits map[uint32]int
	// askers are in the order of node and boot. The list is replaced as a whole: a
	// snapshot may hold it.
	askers []record.Asker
	// sum is the sum of the digests of all records.
	sum uint64
}

// New is a ledger without records.
func New() *Ledger {
	return &Ledger{
		escrows: store.NewTable[record.EscrowID, Escrow](shards),
		keys:    make(map[keyID][]*Escrow), limits: make(map[uint32]int),
	}
}

// Len is the number of records.
func (l *Ledger) Len() int { return l.escrows.Len() }

// Hash is the sum of the digests of all records.
func (l *Ledger) Hash() uint64 { return l.sum }

// Recount is what Hash must be, computed from every record anew.
func (l *Ledger) Recount() uint64 {
	sum := uint64(0)
	// A sum: the order does not matter.
	for e := range l.escrows.All() {
		sum += e.Sum()
	}
	for i := range l.askers {
		sum += l.askers[i].Sum()
	}
	return sum
}

// Find is the record with an id, or nil. It must not be changed.
func (l *Ledger) Find(id record.EscrowID) *Escrow { return l.escrows.Find(id) }

// OfLimit is how many records there are of a limit.
func (l *Ledger) OfLimit(limit uint32) int { return l.limits[limit] }

// OfKey are the records of a key, in no particular order. They must not be changed,
// and are those of now only until something is.
func (l *Ledger) OfKey(limit uint32, key string) []*Escrow { return l.keys[keyID{limit, key}] }

// First is the record that ends first, and when; store.Never where there is none.
func (l *Ledger) First() (*Escrow, bucket.Instant) {
	e, at := l.due.Top()
	return e, bucket.Instant(at)
}

// OfNode are the records of the processes of a node, in the order of their ids. It
// walks all records.
func (l *Ledger) OfNode(node string) []*Escrow {
	var list []*Escrow
	// The order does not matter: the list is sorted below.
	for e := range l.escrows.All() {
		if e.ID.Node == node {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b *Escrow) int { return a.ID.Compare(&b.ID) })
	return list
}

// Add adds a record, whose id must be new.
func (l *Ledger) Add(one record.Escrow) {
	e := &Escrow{Escrow: one, digest: one.Sum()}
	l.escrows.Insert(e)
	l.due.Set(e, int64(e.Until))
	id := keyID{e.LimitID, e.KeyName}
	l.keys[id] = append(l.keys[id], e)
	l.limits[e.LimitID]++
	l.sum += e.digest
}

// Set replaces what a record says, but not its id, bucket and end.
func (l *Ledger) Set(e *Escrow, one record.Escrow) {
	l.sum -= e.digest
	own := l.escrows.Own(e)
	if own != e {
		l.due.Renew(own)
		list := l.keys[keyID{e.LimitID, e.KeyName}]
		list[slices.Index(list, e)] = own
	}
	own.Escrow, own.digest = one, one.Sum()
	l.sum += own.digest
}

// Remove takes a record out.
func (l *Ledger) Remove(e *Escrow) {
	l.sum -= e.digest
	l.due.Remove(e)
	l.escrows.Remove(e)
	id := keyID{e.LimitID, e.KeyName}
	list := l.keys[id]
	if len(list) == 1 {
		delete(l.keys, id)
	} else {
		at := slices.Index(list, e)
		l.keys[id] = slices.Delete(list, at, at+1)
	}
	if l.limits[e.LimitID]--; l.limits[e.LimitID] == 0 {
		delete(l.limits, e.LimitID)
	}
}

// Frozen is the ledger as it was.
type Frozen struct {
	escrows store.Frozen[Escrow, *Escrow]
	askers  []record.Asker
}

// Freeze keeps the ledger as it is now.
func (l *Ledger) Freeze() Frozen { return Frozen{escrows: l.escrows.Freeze(), askers: l.askers} }

// Write writes the ledger into a snapshot.
func (f Frozen) Write(out *frames.Writer) {
	for e := range f.escrows.All() {
		out.Write(&logv1.SnapshotRecord{Kind: &logv1.SnapshotRecord_Escrow{Escrow: e.Save()}})
	}
	for i := range f.askers {
		out.Write(&logv1.SnapshotRecord{Kind: &logv1.SnapshotRecord_Asker{Asker: f.askers[i].Save()}})
	}
}
