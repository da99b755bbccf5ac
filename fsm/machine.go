package fsm

import (
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/digest"
	"github.com/quorlease/quorlease/fsm/store"
)

// Machine is the state. See the package comment for who may call what.
type Machine struct {
	clusterID string
	caps      *logv1.Caps
	clock     clock
	index     uint64

	// revision counts changes of limits and retry budgets.
	revision  uint64
	history   history
	nextLimit uint32
	// limits holds every limit, deleted ones that are remembered too.
	limits     map[string]*limit
	limitsByID map[uint32]*limit
	budgets    budgets
	nodes      []*logv1.NodeRecord

	keys    *store.Table[keyID, key, *key]
	leases  *store.Table[leaseID, lease, *lease]
	clients *store.Table[string, client, *client]

	// What is due, for the sweep at the beginning of an entry.
	dueLimits  store.Queue[*limit]
	openLeases store.Queue[*lease]
	deadLeases store.Queue[*lease]
	dueClients store.Queue[*client]

	// sum is the sum of the digests of all records; see digest.go.
	sum uint64
	// Records that the entry being applied has changed. Their digests are off
	// the sum until it is sealed.
	touched touched

	effects []Effect
	plan    plan
}

// How many shards the tables have. A shard is copied on the first change after a
// snapshot; at a million records one has about 250.
const (
	keyShards    = 4096
	leaseShards  = 4096
	clientShards = 256
)

// New returns the machine of a cluster that has not formed: empty, with
// DefaultCaps.
func New() *Machine {
	return &Machine{
		caps:       DefaultCaps(),
		nextLimit:  1,
		limits:     make(map[string]*limit),
		limitsByID: make(map[uint32]*limit),
		keys:       store.NewTable[keyID, key](keyShards),
		leases:     store.NewTable[leaseID, lease](leaseShards),
		clients:    store.NewTable[string, client](clientShards),
	}
}

// DefaultCaps are the caps until the cluster has formed, and where Form leaves
// one out.
func DefaultCaps() *logv1.Caps {
	return &logv1.Caps{Keys: 1_000_000, Leases: 1_000_000, Limits: 1_000, Clients: 100_000}
}

// Apply applies one entry. index is its place in the log; it must be higher than
// that of the entry before. There is one result for each operation, in their
// order. The entry, the results and the effects share parts with the state:
// nobody may change them afterwards.
func (m *Machine) Apply(index uint64, entry *logv1.Entry) ([]*logv1.Result, []Effect) {
	m.index = index
	m.effects = nil
	m.clock.advance(entry)
	m.sweep()
	operations := entry.GetOperations()
	results := make([]*logv1.Result, len(operations))
	for i, op := range operations {
		results[i] = m.applyOne(op)
	}
	m.seal()
	return results, m.effects
}

// Now is the authority time that the machine has reached.
func (m *Machine) Now() bucket.Instant { return m.clock.now }

// Wall is the leader's wall clock of the last entry, in Unix nanoseconds. It is
// for people only.
func (m *Machine) Wall() int64 { return m.clock.wall }

// Index is that of the last entry applied.
func (m *Machine) Index() uint64 { return m.index }

// ClusterID is 32 hex digits, empty until the cluster has formed.
func (m *Machine) ClusterID() string { return m.clusterID }

// Caps are the bounds of the state. They must not be changed.
func (m *Machine) Caps() *logv1.Caps { return m.caps }

// Revision is the number of the last change of limits and retry budgets, 0
// before the first.
func (m *Machine) Revision() uint64 { return m.revision }

// Counts says how many keys, leases with tombstones, limits with remembered ones,
// and clients there are.
func (m *Machine) Counts() Counts {
	return Counts{
		Keys: m.keys.Len(), Leases: m.leases.Len(), OpenLeases: m.openLeases.Len(),
		Limits: len(m.limits), Clients: m.clients.Len(),
	}
}

// Counts are sizes of the state.
type Counts struct {
	Keys int
	// Leases includes tombstones, OpenLeases those that are not settled.
	Leases, OpenLeases int
	// Limits includes deleted ones that are remembered.
	Limits  int
	Clients int
}

// Hash is the state hash: two machines that have applied the same entries have
// the same, whatever their architecture and whether or not one was restored
// from a snapshot in between (G9). The index is no part of it.
func (m *Machine) Hash() uint64 {
	head := digest.New(tagMachine)
	head.Text(m.clusterID)
	digestCaps(&head, m.caps)
	head.Int(int64(m.clock.now))
	head.Int(m.clock.wall)
	head.Word(m.revision)
	head.Word(uint64(m.nextLimit))
	return m.sum + head.Value()
}
