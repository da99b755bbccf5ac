package cluster

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/clock"
	"github.com/quorlease/quorlease/cluster/entry"
	"github.com/quorlease/quorlease/cluster/metrics"
	"github.com/quorlease/quorlease/cluster/retries"
	"github.com/quorlease/quorlease/cluster/roster"
	"github.com/quorlease/quorlease/fsm"
)

// testFSM is an adapter whose own clock the test moves, and the errors with
// which it stopped the node.
func testFSM(elapsed *time.Duration) (f *raftFSM, stopped *[]error) {
	stopped = new([]error)
	f = newRaftFSM(clock.New(func() time.Duration { return *elapsed }), metrics.New(), roster.New(nil))
	f.desk = retries.NewDesk("a.00000000")
	f.onBegin = func() {}
	f.onStep, f.onRestore, f.onMembers = func(step) {}, func(*fsm.Machine) {}, func(uint64, []roster.Member) {}
	f.fail = func(err error) { *stopped = append(*stopped, err) }
	return f, stopped
}

func stamped(t *testing.T, index uint64, stamp time.Duration) *raft.Log {
	t.Helper()
	data, err := entry.Encode(&logv1.Entry{Stamp: int64(stamp)})
	if err != nil {
		t.Fatal(err)
	}
	return &raft.Log{Index: index, Type: raft.LogCommand, Data: data}
}

func TestApplyAnchorsTheClock(t *testing.T) {
	t.Parallel()
	t.Run("T4_an_old_stamp_does_nothing", func(t *testing.T) {
		t.Parallel()
		var elapsed time.Duration
		f, _ := testFSM(&elapsed)
		f.Apply(stamped(t, 1, time.Minute))
		elapsed += time.Second
		f.Apply(stamped(t, 2, 30*time.Second))
		if got := time.Duration(f.machine.Now()); got != time.Minute {
			t.Errorf("the state is at %s, want 1m", got)
		}
		if got := time.Duration(f.clock.Estimate()); got != time.Minute {
			t.Errorf("the estimate is %s, want 1m", got)
		}
	})
	t.Run("T39_a_snapshot_carries_the_time", func(t *testing.T) {
		t.Parallel()
		var elapsed time.Duration
		f, _ := testFSM(&elapsed)
		f.Apply(stamped(t, 7, time.Hour))
		var file bytes.Buffer
		snapshot := f.machine.Snapshot()
		if _, err := snapshot.WriteTo(&file); err != nil {
			t.Fatal(err)
		}
		snapshot.Release()
		other, _ := testFSM(&elapsed)
		if err := other.Restore(io.NopCloser(&file)); err != nil {
			t.Fatal(err)
		}
		elapsed += time.Second
		if got := time.Duration(other.clock.Estimate()); got != time.Hour+time.Second {
			t.Errorf("the estimate is %s, want 1h0m1s", got)
		}
		if got := other.reached.Last(); got != 7 {
			t.Errorf("applied up to %d, want 7", got)
		}
	})
}

// TestRevisionIsThatOfTheState: it is known without the state, also after a
// snapshot has replaced it.
func TestRevisionIsThatOfTheState(t *testing.T) {
	t.Parallel()
	var elapsed time.Duration
	f, _ := testFSM(&elapsed)
	for i := range uint64(2) {
		data, err := entry.Encode(&logv1.Entry{Operations: []*logv1.Operation{
			{Kind: &logv1.Operation_ApplyLimits{ApplyLimits: &logv1.ApplyLimits{Limits: []*logv1.Limit{
				{Name: "free", Unlimited: true, Target: 10_000, MaxKeys: 1, Lease: int64(time.Second) + int64(i)},
			}}}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		f.Apply(&raft.Log{Index: i + 1, Type: raft.LogCommand, Data: data})
		if got := f.revision.Load(); got != i+1 || got != f.machine.Revision() {
			t.Errorf("revision %d, want %d", got, i+1)
		}
	}
	var file bytes.Buffer
	snapshot := f.machine.Snapshot()
	defer snapshot.Release()
	if _, err := snapshot.WriteTo(&file); err != nil {
		t.Fatal(err)
	}
	other, _ := testFSM(&elapsed)
	if err := other.Restore(io.NopCloser(&file)); err != nil {
		t.Fatal(err)
	}
	if got := other.revision.Load(); got != 2 {
		t.Errorf("revision %d after a restore, want 2", got)
	}
}

func TestG9HaltedForGood(t *testing.T) {
	t.Parallel()
	var elapsed time.Duration
	f, stopped := testFSM(&elapsed)
	f.Apply(stamped(t, 1, time.Second))
	before := f.machine.Hash()
	newer := stamped(t, 2, 2*time.Second)
	newer.Data[0] = 99
	if _, err := f.Apply(newer).(*applied).unpack(); !errors.Is(err, ErrOutcomeUnknown) {
		t.Errorf("the waiter hears %v", err)
	}
	// raft may hand over more before it has stopped.
	f.Apply(stamped(t, 3, 3*time.Second))
	if f.machine.Hash() != before || f.machine.Index() != 1 {
		t.Errorf("entry %d was applied after the halt", f.machine.Index())
	}
	if len(*stopped) != 1 || !errors.Is((*stopped)[0], ErrProtected) || !errors.Is((*stopped)[0], fsm.ErrNewerVersion) {
		t.Errorf("stopped with %v", *stopped)
	}
	if _, err := f.Snapshot(); !errors.Is(err, ErrProtected) {
		t.Errorf("a snapshot beyond the halt: %v", err)
	}
}

func TestRestoreIsAllOrNothing(t *testing.T) {
	t.Parallel()
	var elapsed time.Duration
	f, stopped := testFSM(&elapsed)
	f.Apply(stamped(t, 1, time.Second))
	if err := f.Restore(io.NopCloser(bytes.NewReader([]byte("no snapshot")))); !errors.Is(err, fsm.ErrCorrupt) {
		t.Fatalf("got %v", err)
	}
	if f.machine.Index() != 1 || len(*stopped) != 0 {
		t.Fatalf("index %d, stopped %v", f.machine.Index(), *stopped)
	}
}
