package fsmtest

import (
	"bytes"
	"testing"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/effect"
)

// Driver applies entries to a machine and checks after each what must always be
// true: one result for each operation, a state hash that a recount agrees with,
// and levels within their bounds.
type Driver struct {
	*fsm.Machine
	T testing.TB
	// Ahead, where set, is by how much the wall clock is ahead of authority time.
	Ahead time.Duration
	// Effects are those of the last entry.
	Effects []effect.Effect
	// Shadow, where set, applies the same through the bytes of the log, and is
	// saved and restored after every entry: it must not make a difference (G9).
	Shadow *fsm.Machine
}

// New is a driver with an empty machine.
func New(t testing.TB) *Driver { return &Driver{Machine: fsm.New(), T: t} }

// WithShadow is a driver with an empty machine and a shadow.
func WithShadow(t testing.TB) *Driver {
	return &Driver{Machine: fsm.New(), Shadow: fsm.New(), T: t}
}

// At applies one entry.
func (d *Driver) At(at time.Duration, operations ...*logv1.Operation) []*logv1.Result {
	d.T.Helper()
	entry := &logv1.Entry{Stamp: int64(at), Operations: operations}
	if d.Ahead > 0 {
		entry.Wall = int64(d.Ahead + at)
	}
	return d.Entry(entry)
}

// Acquire applies one acquire in an entry of its own.
func (d *Driver) Acquire(at time.Duration, op *logv1.Operation) *logv1.AcquireResult {
	d.T.Helper()
	result := d.At(at, op)[0]
	if result.GetAcquire() == nil {
		d.T.Fatalf("acquire %v: %v", op, result)
	}
	return result.GetAcquire()
}

// Entry applies one entry.
func (d *Driver) Entry(entry *logv1.Entry) []*logv1.Result {
	d.T.Helper()
	index := d.Index() + 1
	data, err := fsm.EncodeEntry(entry)
	if err != nil {
		d.T.Fatalf("encode %v: %v", entry, err)
	}
	var results []*logv1.Result
	results, d.Effects = d.Apply(index, entry)
	if len(results) != len(entry.GetOperations()) {
		d.T.Fatalf("%d results of %d operations", len(results), len(entry.GetOperations()))
	}
	if hash, recount := d.Hash(), d.Recount(); hash != recount {
		d.T.Fatalf("index %d: the hash is %016x, the recount %016x", index, hash, recount)
	}
	if d.Shadow != nil {
		d.follow(index, data)
	}
	d.checkLevels()
	return results
}

func (d *Driver) follow(index uint64, data []byte) {
	d.T.Helper()
	entry, err := fsm.DecodeEntry(data)
	if err != nil {
		d.T.Fatalf("decode: %v", err)
	}
	d.Shadow.Apply(index, entry)
	d.Shadow = Restored(d.T, d.Shadow)
	if d.Hash() != d.Shadow.Hash() {
		d.T.Fatalf("index %d: the hash is %016x, after saving and restoring %016x", index, d.Hash(), d.Shadow.Hash())
	}
}

// checkLevels looks at every limit's bucket: of keys only those that a limit
// without keys has, since reads name keys one by one.
func (d *Driver) checkLevels() {
	d.T.Helper()
	limits, _ := d.Limits("")
	for _, limit := range limits {
		if !limit.GetKeyed() {
			d.CheckKey(limit.GetName(), "")
		}
	}
}

// CheckKey checks that the levels of a key are within their bounds (I2).
func (d *Driver) CheckKey(limit, key string) *fsm.Inspection {
	d.T.Helper()
	in, err := d.Inspect(0, limit, key)
	if err != nil {
		d.T.Fatalf("inspect %s/%s: %v", limit, key, err)
	}
	for _, b := range in.Buckets {
		if b.Level < 0 || b.Level > b.Burst || b.Debt < 0 || b.Open < 0 {
			d.T.Fatalf("%s/%s at %d: level %d of %d, debt %d, open %d", limit, key, in.Now, b.Level, b.Burst, b.Debt, b.Open)
		}
		for _, c := range b.Classes {
			if c.Level < 0 || c.Level > c.SubBurst || c.Debt < 0 {
				d.T.Fatalf("%s/%s class %q: level %d of %d, debt %d", limit, key, c.Name, c.Level, c.SubBurst, c.Debt)
			}
		}
	}
	return in
}

// Level is the tokens in a bucket at now.
func (d *Driver) Level(now time.Duration, limit, key, dimension string) int64 {
	d.T.Helper()
	in, err := d.Inspect(bucket.Instant(now), limit, key)
	if err != nil {
		d.T.Fatalf("inspect %s/%s: %v", limit, key, err)
	}
	for _, b := range in.Buckets {
		if b.Dimension == dimension {
			return b.Level
		}
	}
	d.T.Fatalf("limit %q does not count %q", limit, dimension)
	return 0
}

// Restored is the machine after a snapshot was written and read.
func Restored(t testing.TB, m *fsm.Machine) *fsm.Machine {
	t.Helper()
	restored, err := fsm.Restore(bytes.NewReader(Saved(t, m)))
	if err != nil {
		t.Fatalf("restore: %v", err)
	}
	return restored
}

// Saved is a snapshot of the machine.
func Saved(t testing.TB, m *fsm.Machine) []byte {
	t.Helper()
	var file bytes.Buffer
	snapshot := m.Snapshot()
	defer snapshot.Release()
	n, err := snapshot.WriteTo(&file)
	if err != nil || n != int64(file.Len()) {
		t.Fatalf("write snapshot: %d of %d bytes, %v", n, file.Len(), err)
	}
	return file.Bytes()
}
