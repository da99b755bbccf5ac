package cluster

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/clock"
	"github.com/quorlease/quorlease/cluster/disk"
	"github.com/quorlease/quorlease/cluster/entry"
	"github.com/quorlease/quorlease/cluster/metrics"
	"github.com/quorlease/quorlease/cluster/overview"
	"github.com/quorlease/quorlease/cluster/progress"
	"github.com/quorlease/quorlease/cluster/retries"
	"github.com/quorlease/quorlease/cluster/roster"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/effect"
)

// raftFSM is where raft meets the state machine, and nowhere else.
//
// raft calls Apply, Snapshot and Restore from one goroutine; readers use view
// from any.
type raftFSM struct {
	clock   *clock.Clock
	metrics *metrics.Set
	// onBegin is told that an entry is about to be applied. It must not block.
	onBegin func()
	// onStep is told what an entry did, in order. It must not block.
	onStep func(step)
	// onMembers is told that an entry named other members than before.
	onMembers func(index uint64, before []roster.Member)
	// onRestore is told that a snapshot replaced the state, before it is used.
	onRestore func(*fsm.Machine)
	// fail stops the node.
	fail      func(error)
	snapshots *disk.Snapshots
	// roster is told which members the log names.
	roster *roster.Roster
	// desk is told, under mu, which of this node's retry reports are applied.
	desk *retries.Desk
	// decoder is Apply's.
	decoder entry.Decoder

	mu      sync.RWMutex
	machine *fsm.Machine
	// halted is why nothing is applied any more.
	halted error

	// revision is that of the machine, for those who don't want to wait for mu.
	revision atomic.Uint64
	reached  progress.Index
	// sinceSnapshot counts the bytes of entries applied since the last snapshot.
	sinceSnapshot atomic.Int64
}

// step is one applied entry, as observers see it.
type step struct {
	index      uint64
	wall       time.Time
	operations []*logv1.Operation
	results    []*logv1.Result
	effects    []effect.Effect
	reports    *overview.Reports
}

// applied is what raft hands back for an entry.
type applied struct {
	results []*logv1.Result
	err     error
}

// unpack returns what the state machine answered. An error means that this node
// could not apply a committed entry: others may have.
func (a *applied) unpack() ([]*logv1.Result, error) {
	if a.err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOutcomeUnknown, a.err)
	}
	return a.results, nil
}

func newRaftFSM(c *clock.Clock, m *metrics.Set, r *roster.Roster) *raftFSM {
	return &raftFSM{clock: c, metrics: m, roster: r, machine: fsm.New()}
}

// StoreConfiguration implements raft.ConfigurationStore: raft tells of the members
// that it has committed in no other way.
func (f *raftFSM) StoreConfiguration(index uint64, c raft.Configuration) {
	f.onMembers(index, f.roster.Store(index, c))
}

// Apply applies one committed entry. An entry that can't be read, or that a
// newer program wrote, stops the node: to pass over it would be to diverge
// (G9). From then on nothing is applied and no snapshot is taken.
func (f *raftFSM) Apply(log *raft.Log) any {
	f.onBegin()
	if err := f.haltedBy(); err != nil {
		return &applied{err: err}
	}
	e, err := f.decoder.Decode(log.Data, log.Term)
	if err != nil {
		return &applied{err: f.halt(fmt.Errorf("read log entry %d: %w", log.Index, err))}
	}
	start := time.Now()
	f.mu.Lock()
	reports := overview.Look(f.machine, e)
	results, effects := f.machine.Apply(log.Index, e)
	reports.Compare(f.machine)
	now, revision := f.machine.Now(), f.machine.Revision()
	for _, op := range e.GetOperations() {
		if report := op.GetReportRetries(); report != nil {
			f.desk.Applied(f.machine, f.clock.Elapsed(), report)
		}
	}
	f.mu.Unlock()
	f.revision.Store(revision)
	f.clock.SetApplied(now)
	f.sinceSnapshot.Add(int64(len(log.Data)))
	f.metrics.Applied(time.Since(start))
	f.onStep(step{log.Index, time.Unix(0, e.GetWall()), e.GetOperations(), results, effects, reports})
	f.reached.Advance(log.Index)
	return &applied{results: results}
}

// halt stops applying and the node with it, and returns the error to give.
func (f *raftFSM) halt(err error) error {
	if errors.Is(err, fsm.ErrNewerVersion) {
		err = fmt.Errorf("%w: a newer program wrote it, upgrade this node: %w", ErrProtected, err)
	} else {
		err = fmt.Errorf("%w: %w", ErrProtected, err)
	}
	f.mu.Lock()
	f.halted = err
	f.mu.Unlock()
	f.fail(err)
	return err
}

func (f *raftFSM) haltedBy() error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.halted
}

// view calls read with the machine, which must not be kept. Entries are not
// applied meanwhile.
func (f *raftFSM) view(read func(*fsm.Machine)) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	read(f.machine)
}

// now is the estimate to read with: never below what was applied.
func (f *raftFSM) now(m *fsm.Machine) bucket.Instant {
	return max(f.clock.Estimate(), m.Now())
}

// Snapshot takes a copy-on-write handle; writing it out goes on beside Apply.
func (f *raftFSM) Snapshot() (raft.FSMSnapshot, error) {
	start := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.halted != nil {
		return nil, f.halted
	}
	handle := f.machine.Snapshot()
	f.sinceSnapshot.Store(0)
	f.metrics.SnapshotPause(time.Since(start))
	return f.snapshots.Persisting(handle), nil
}

// Restore replaces the state, all of it or nothing, and anchors the clock to
// the time in the snapshot (T39).
func (f *raftFSM) Restore(source io.ReadCloser) error {
	machine, err := fsm.Restore(source)
	if err != nil {
		err = fmt.Errorf("restore snapshot: %w", err)
		if errors.Is(err, fsm.ErrNewerVersion) {
			return f.halt(err)
		}
		return err
	}
	f.onRestore(machine)
	f.mu.Lock()
	f.machine = machine
	f.desk.Restored(machine)
	f.mu.Unlock()
	f.revision.Store(machine.Revision())
	f.clock.SetApplied(machine.Now())
	f.reached.Advance(machine.Index())
	return nil
}
