package fsm

import (
	"io"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/admitted"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/effect"
	"github.com/quorlease/quorlease/fsm/escrow"
	"github.com/quorlease/quorlease/fsm/feedback"
	"github.com/quorlease/quorlease/fsm/frames"
	"github.com/quorlease/quorlease/fsm/lease"
	"github.com/quorlease/quorlease/fsm/shares"
	"github.com/quorlease/quorlease/fsm/state"
)

// Machine applies entries to a state. See the package comment for who may call
// what.
type Machine struct {
	state  *state.State
	leases *lease.Book
	// admitted is what clients admitted by themselves.
	admitted *admitted.Book
	// feedback is what providers said.
	feedback *feedback.Book
	// escrow is what nodes may grant from memory.
	escrow *escrow.Book
	// effects are those of the entry being applied, plan the acquire.
	effects effect.List
	plan    plan
}

// New returns the machine of a cluster that has not formed: empty, with
// check.DefaultCaps.
func New() *Machine { return working(state.New()) }

func working(s *state.State) *Machine {
	m := &Machine{state: s}
	m.leases = lease.New(s, &m.effects)
	m.admitted = admitted.New(s, &m.effects)
	m.feedback = feedback.New(s, &m.effects)
	m.escrow = escrow.New(s, &m.effects)
	return m
}

// Apply applies one entry. index is its place in the log; it must be higher than
// that of the entry before. There is one result for each operation, in their
// order. The entry, the results and the effects share parts with the state:
// nobody may change them afterwards.
func (m *Machine) Apply(index uint64, entry *logv1.Entry) ([]*logv1.Result, []effect.Effect) {
	m.state.Index = index
	m.effects.Begin(index)
	m.advance(entry)
	m.sweep()
	operations := entry.GetOperations()
	m.escrow.Begin(operations)
	results := make([]*logv1.Result, len(operations))
	for i, op := range operations {
		results[i] = m.applyOne(op)
	}
	m.state.Seal()
	m.plan.reset()
	return results, m.effects.All()
}

// Now is the authority time that the machine has reached.
func (m *Machine) Now() bucket.Instant { return m.state.Now }

// Wall is the leader's wall clock of the last entry, in Unix nanoseconds. It is
// for people only.
func (m *Machine) Wall() int64 { return m.state.Wall }

// Index is that of the last entry applied.
func (m *Machine) Index() uint64 { return m.state.Index }

// ClusterID is 32 hex digits, empty until the cluster has formed.
func (m *Machine) ClusterID() string { return m.state.ClusterID }

// Caps are the bounds of the state. They must not be changed.
func (m *Machine) Caps() *logv1.Caps { return m.state.Caps }

// Revision is the number of the last change of limits and retry budgets, 0
// before the first.
func (m *Machine) Revision() uint64 { return m.state.Revision }

// Revision is one change of limits and retry budgets. It must not be changed.
type Revision = state.Revision

// History is the last n changes, the newest first; all that are kept where n is
// 0.
func (m *Machine) History(n int) []*Revision { return m.state.History(n) }

// Nodes are the members in the order of their Raft ids. They must not be
// changed.
func (m *Machine) Nodes() []*logv1.NodeRecord { return m.state.Nodes() }

// Counts are sizes of the state.
type Counts struct {
	Keys int
	// Leases includes tombstones, OpenLeases are those that have not ended.
	Leases, OpenLeases int
	// Limits includes deleted ones that are remembered.
	Limits  int
	Clients int
	// Sessions are those that hold slots.
	Sessions int
	// Reports are those of what clients admitted by themselves.
	Reports int
	// Shares are sessions that were promised a share of a limit, once for each.
	Shares int
	// Controlled are keys that feedback has paused, slowed or blocked, Blocked those
	// that stay closed until a person clears them.
	Controlled, Blocked int
	// Escrows are records of what nodes hold.
	Escrows int
}

// Counts says how much there is of what the caps bound.
func (m *Machine) Counts() Counts {
	return Counts{
		Keys: m.state.Keys(), Leases: m.state.Leases(), OpenLeases: m.state.OpenLeases(),
		Limits: m.state.Limits(), Clients: m.state.Clients(), Reports: m.state.Reports(), Sessions: m.state.Sessions(),
		Shares: m.state.Shares.Len(), Controlled: m.state.Controlled(), Blocked: m.state.Blocked(),
		Escrows: m.state.Ledger.Len(),
	}
}

// Escrow is what nodes hold of buckets, and may.
func (m *Machine) Escrow() escrow.View { return escrow.See(m.state) }

// Hash is the state hash: two machines that have applied the same entries have
// the same, whatever their architecture and whether or not one was restored
// from a snapshot in between (G9). The index is no part of it.
func (m *Machine) Hash() uint64 { return m.state.Hash() }

// Snapshot is the state as it was, for writing it out while entries are applied.
// It has WriteTo, Release and Index.
type Snapshot = state.Snapshot

// Snapshot keeps the state as it is now, in about as much time as it takes to
// copy ten thousand pointers. It must not run beside Apply; writing the
// snapshot may.
func (m *Machine) Snapshot() *Snapshot { return m.state.Snapshot() }

// What a log entry or a snapshot can be besides readable. Either stops the node:
// to pass over it would be to diverge (G9).
var (
	// ErrNewerVersion: a newer program wrote it.
	ErrNewerVersion = frames.ErrNewerVersion
	// ErrCorrupt: it is not what was written.
	ErrCorrupt = frames.ErrCorrupt
)

// Shares is the book of what sessions were promised, to be read.
func (m *Machine) Shares() *shares.Book { return m.state.Shares }

// Restore reads a snapshot into a new machine. The error is ErrNewerVersion or
// ErrCorrupt, or that of the reader. Nothing in the snapshot is believed.
func Restore(source io.Reader) (*Machine, error) {
	restored, err := state.Restore(source)
	if err != nil {
		return nil, err
	}
	return working(restored), nil
}

// Recount is the state hash computed from every record anew: what Hash must be,
// at the price of walking the state. It is for checks.
func (m *Machine) Recount() uint64 { return m.state.Recount() }
