package fsm_test

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"testing"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/fsmtest"
)

// The figures of a million keys of 32 bytes with one dimension.
const (
	millionKeys     = 1_000_000
	millionHeapMax  = 250_000_000
	millionPauseMax = 10 * time.Millisecond
	millionStepMax  = 2 * time.Millisecond
)

// drained makes entries that take a token from each of so many keys.
func drained(t testing.TB, m *fsm.Machine, keys int) {
	t.Helper()
	const each = 512
	for first := 0; first < keys; first += each {
		entry := &logv1.Entry{Stamp: int64(time.Second)}
		for k := first; k < min(first+each, keys); k++ {
			entry.Operations = append(entry.Operations,
				fsmtest.Acquire("", fsmtest.Charge("api", keyName(k), "requests", 1)))
		}
		data, err := fsm.EncodeEntry(entry)
		if err != nil {
			t.Fatal(err)
		}
		// As from the log: nothing is shared between operations.
		if entry, err = fsm.DecodeEntry(data); err != nil {
			t.Fatal(err)
		}
		results, _ := m.Apply(m.Index()+1, entry)
		if !results[0].GetAcquire().GetGranted() {
			t.Fatal(results[0])
		}
	}
}

func keyName(k int) string { return fmt.Sprintf("tenant-%025d", k) }

// TestMillionBuckets measures what a million keys cost, and that they go: memory
// follows the keys that are in use (A11).
func TestMillionBuckets(t *testing.T) {
	if testing.Short() {
		t.Skip("a million keys take some seconds: not with -short")
	}
	base := heap()
	m := fsm.New()
	limit := fsmtest.Keyed("api", fsmtest.Dimension(t, "requests", "1/60s", 5))
	limit.MaxKeys = millionKeys
	m.Apply(1, &logv1.Entry{Operations: []*logv1.Operation{fsmtest.Apply(limit)}})
	drained(t, m, millionKeys)
	t.Run("heap", func(t *testing.T) {
		used := heap() - base
		t.Logf("%d keys: %d MB of heap, %d bytes a key", m.Counts().Keys, used/1e6, used/millionKeys)
		if used > millionHeapMax {
			t.Errorf("%d bytes of heap, at most %d", used, millionHeapMax)
		}
	})
	t.Run("keys", func(t *testing.T) { millionWalk(t, m) })
	t.Run("snapshot", func(t *testing.T) { millionSnapshot(t, m) })
	t.Run("A11_memory_follows_active_keys", func(t *testing.T) {
		// At 61 s all keys are full. Ticks once a second have two minutes.
		for second := 61; second <= 121; second++ {
			m.Apply(m.Index()+1, &logv1.Entry{Stamp: int64(second) * int64(time.Second)})
		}
		used := heap() - base
		t.Logf("after twice the time to refill: %d keys, %d MB of heap", m.Counts().Keys, used/1e6)
		if m.Counts().Keys != 0 || used > millionHeapMax/10 {
			t.Errorf("%d keys and %d bytes of heap, want none", m.Counts().Keys, used)
		}
	})
	runtime.KeepAlive(m)
}

// millionSnapshot measures the pause, and what the first entry after it pays for
// copying.
func millionSnapshot(t *testing.T, m *fsm.Machine) {
	// The least of five: the machine may have other work.
	var snapshot *fsm.Snapshot
	pause := time.Hour
	for range 5 {
		start := time.Now()
		snapshot = m.Snapshot()
		pause = min(pause, time.Since(start))
	}
	start := time.Now()
	m.Apply(m.Index()+1, mixed(1, int64(time.Second)))
	first := time.Since(start)
	start = time.Now()
	size, err := snapshot.WriteTo(io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("pause %v; first entry of 512 after it %v; %d MB written in %v", pause, first, size/1e6, time.Since(start))
	if pause > millionPauseMax {
		t.Errorf("a pause of %v, at most %v", pause, millionPauseMax)
	}
	snapshot.Release()
}

// millionWalk measures how long a step of a walk over all keys holds up entries, and
// what the walk allocates.
func millionWalk(t *testing.T, m *fsm.Machine) {
	var walk *fsm.KeyWalk
	steps := make([]time.Duration, 0, millionKeys)
	allocated := testing.AllocsPerRun(1, func() {
		walk, steps = fsm.NewKeyWalk("api", "", 20), steps[:0]
		for done := false; !done; {
			start := time.Now()
			var err error
			if done, err = walk.Step(m, 0); err != nil {
				t.Fatal(err)
			}
			steps = append(steps, time.Since(start))
		}
	})
	slices.Sort(steps)
	// The middle: the machine may have other work.
	step := steps[len(steps)/2]
	t.Logf("%d keys in %d steps of %v; %.0f allocations", walk.Total, len(steps), step, allocated)
	if walk.Total != millionKeys || step > millionStepMax || allocated > 100 {
		t.Errorf("%d keys, a step of %v, at most %v; %.0f allocations", walk.Total, step, millionStepMax, allocated)
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapInuse)
}

// mixed is an entry of 512 operations: acquires of all sorts, settles, releases and
// retry reports, on a thousand keys.
func mixed(round int, stamp int64) *logv1.Entry {
	entry := &logv1.Entry{Stamp: stamp}
	for i := range 512 {
		id := fmt.Sprintf("%d.%d", round, i)
		key := keyName((round*7919 + i*31) % 1000)
		charge := fsmtest.Charge("api", key, "requests", 1)
		switch i % 8 {
		case 0:
			entry.Operations = append(entry.Operations, fsmtest.Track(id, charge))
		case 1:
			entry.Operations = append(entry.Operations, fsmtest.Settle(fmt.Sprintf("%d.%d", round, i-1), "requests", 0))
		case 2:
			entry.Operations = append(entry.Operations, fsmtest.Report("n1", 1, &logv1.ClientSlice{
				Client: key, Slice: stamp / int64(time.Second), Total: int64(round), Retries: 1,
			}))
		case 3:
			entry.Operations = append(entry.Operations, fsmtest.Release(id))
		default:
			entry.Operations = append(entry.Operations, fsmtest.Acquire(id, charge))
		}
	}
	return entry
}

// BenchmarkApplyMixed applies entries of 512 mixed operations.
func BenchmarkApplyMixed(b *testing.B) {
	m := fsm.New()
	limit := fsmtest.Keyed("api", fsmtest.Dimension(b, "requests", "1000/1s", 1000))
	m.Apply(1, &logv1.Entry{Operations: []*logv1.Operation{fsmtest.Apply(limit)}})
	entries := make([]*logv1.Entry, 64)
	for i := range entries {
		entries[i] = mixed(i, int64(i)*int64(10*time.Millisecond))
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		m.Apply(m.Index()+1, entries[i%len(entries)])
	}
}

// BenchmarkApplyAcquires applies entries of 512 untracked acquires on a hundred
// keys, granted and denied.
func BenchmarkApplyAcquires(b *testing.B) {
	m := fsm.New()
	limit := fsmtest.Keyed("api", fsmtest.Dimension(b, "requests", "1000/1s", 1000))
	m.Apply(1, &logv1.Entry{Operations: []*logv1.Operation{fsmtest.Apply(limit)}})
	entry := &logv1.Entry{}
	for i := range 512 {
		entry.Operations = append(entry.Operations,
			fsmtest.Acquire("", fsmtest.Charge("api", keyName(i%100), "requests", 1)))
	}
	b.ReportAllocs()
	for b.Loop() {
		entry.Stamp += int64(5 * time.Millisecond)
		m.Apply(m.Index()+1, entry)
	}
}

// BenchmarkDecodeEntry reads an entry of 512 mixed operations.
func BenchmarkDecodeEntry(b *testing.B) {
	data, err := fsm.EncodeEntry(mixed(1, 1))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := fsm.DecodeEntry(data); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSnapshotPause is how long nothing is applied, with 100,000 keys.
func BenchmarkSnapshotPause(b *testing.B) {
	m := fsm.New()
	m.Apply(1, &logv1.Entry{Operations: []*logv1.Operation{
		fsmtest.Apply(fsmtest.Keyed("api", fsmtest.Dimension(b, "requests", "1/60s", 5))),
	}})
	drained(b, m, 100_000)
	for b.Loop() {
		m.Snapshot().Release()
	}
}
