// Package state holds what the state machine remembers: limits with their keys,
// leases, clients, reports, members and the history of changes. It knows how that is
// hashed, frozen, saved and restored, and what is due when; what the operations
// mean is the business of package fsm.
//
// A record is changed in three steps: find it, touch it (a Change or Touch method,
// which takes its digest off the state hash and copies it where a snapshot still
// holds it), and change what the method returned. Seal ends the entry: all that
// was touched gets its new digest and its new place among what is due.
//
// The package is pure: no clock, no lock, no goroutine. One caller changes a
// State; others may read it while it doesn't. A Snapshot may be written at any
// time, from any goroutine.
package state

import (
	"maps"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/check"
	"github.com/quorlease/quorlease/fsm/digest"
	"github.com/quorlease/quorlease/fsm/ledger"
	"github.com/quorlease/quorlease/fsm/record"
	"github.com/quorlease/quorlease/fsm/shares"
	"github.com/quorlease/quorlease/fsm/store"
)

// State is everything. The exported fields are changed by package fsm directly;
// they are part of the state hash as they are.
type State struct {
	// ClusterID is empty until the cluster has formed.
	ClusterID string
	Caps      *logv1.Caps
	// Now is authority time. Wall is the leader's clock in Unix nanoseconds, for
	// people only.
	Now  bucket.Instant
	Wall int64
	// Index is that of the last entry. It is no part of the hash.
	Index uint64
	// Revision counts changes of limits and retry budgets.
	Revision uint64

	nextLimit  uint32
	limits     map[string]*Limit
	limitsByID map[uint32]*Limit
	budgets    budgets
	nodes      []*logv1.NodeRecord
	history    history

	keys   *store.Table[keyID, Key, *Key]
	leases *store.Table[record.LeaseID, Lease, *Lease]
	// sessions are those that hold slots.
	sessions *store.Table[record.SessionKey, Session, *Session]
	clients  *store.Table[string, Client, *Client]
	reports  *store.Table[record.ReportID, Report, *Report]
	// controls are what feedback did to keys.
	controls *store.Table[record.ControlID, Control, *Control]
	// Shares is what sessions were promised. It seals itself.
	Shares *shares.Book
	// Ledger is what nodes hold of buckets. AddEscrow and EndEscrow change it, since keys
	// of which they hold something are not dropped.
	Ledger *ledger.Ledger

	dueLimits   store.Queue[*Limit]
	dueSessions store.Queue[*Session]
	openLeases  store.Queue[*Lease]
	deadLeases  store.Queue[*Lease]
	dueClients  store.Queue[*Client]
	dueReports  store.Queue[*Report]
	// dueControls is by when a control has no effect any more, blocked how many a
	// person has to clear.
	dueControls store.Queue[*Control]
	blocked     int

	// sum is the sum of the digests of all records that are not touched.
	sum     uint64
	touched touched
}

// How many shards the tables have. A shard is copied on the first change after a
// snapshot; at a million records one has about 250.
const (
	keyShards     = 4096
	leaseShards   = 4096
	sessionShards = 256
	clientShards  = 256
	reportShards  = 256
	// controlShards is for few, see MaxControls.
	controlShards = 64
)

// New is the state of a cluster that has not formed: empty, with DefaultCaps.
func New() *State {
	return &State{
		Caps:       check.DefaultCaps(),
		nextLimit:  1,
		limits:     make(map[string]*Limit),
		limitsByID: make(map[uint32]*Limit),
		keys:       store.NewTable[keyID, Key](keyShards),
		leases:     store.NewTable[record.LeaseID, Lease](leaseShards),
		sessions:   store.NewTable[record.SessionKey, Session](sessionShards),
		clients:    store.NewTable[string, Client](clientShards),
		reports:    store.NewTable[record.ReportID, Report](reportShards),
		controls:   store.NewTable[record.ControlID, Control](controlShards),
		Shares:     shares.New(),
		Ledger:     ledger.New(),
	}
}

// Hash is the state hash: the sum of the digests of all records. Call it between
// entries only.
func (s *State) Hash() uint64 { return s.sum + s.Shares.Digest() + s.Ledger.Hash() + s.head() }

// head is the digest of what is no record.
func (s *State) head() uint64 {
	head := digest.New(tagState)
	head.Text(s.ClusterID)
	digestCaps(&head, s.Caps)
	head.Int(int64(s.Now))
	head.Int(s.Wall)
	head.Word(s.Revision)
	head.Word(uint64(s.nextLimit))
	return head.Value()
}

// Recount is the state hash computed from every record anew. It is what Hash must
// be, at the price of walking the state.
func (s *State) Recount() uint64 {
	sum := s.head() + s.Shares.Recount() + s.Ledger.Recount()
	// A sum: the order of the maps and tables below does not matter.
	for lim := range maps.Values(s.limits) {
		sum += sumLineage(lim.Lineage)
	}
	for _, b := range s.budgets.list {
		sum += record.SumBudget(b)
	}
	for _, n := range s.nodes {
		sum += record.SumNode(n)
	}
	for _, r := range s.history.list {
		sum += r.Sum()
	}
	for k := range s.keys.All() {
		sum += k.sum(s.limitsByID[k.LimitID].At(k.Passed))
	}
	for one := range s.sessions.All() {
		sum += one.Sum()
	}
	for l := range s.leases.All() {
		sum += l.Sum()
	}
	for c := range s.clients.All() {
		sum += c.sum()
	}
	for r := range s.reports.All() {
		sum += r.Sum()
	}
	for c := range s.controls.All() {
		sum += c.Sum()
	}
	return sum
}

// Keys is the number of keys over all limits.
func (s *State) Keys() int { return s.keys.Len() }

// Leases is the number of leases with tombstones, OpenLeases of those that have
// not ended.
func (s *State) Leases() int     { return s.leases.Len() }
func (s *State) OpenLeases() int { return s.openLeases.Len() }

// Limits is the number of limits, deleted ones that are remembered too.
func (s *State) Limits() int { return len(s.limits) }

// Clients is the number of clients that are counted.
func (s *State) Clients() int { return s.clients.Len() }
