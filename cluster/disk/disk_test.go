package disk

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// store is a store in memory that can be made to hang or to fail.
type store struct {
	*raft.InmemStore
	// hang is closed when the calls that hang may go on. Nil: none hangs.
	hang chan struct{}
	err  error
	// monotonic is what it says of itself.
	monotonic bool
}

func (s *store) StoreLogs(logs []*raft.Log) error {
	if s.hang != nil {
		<-s.hang
	}
	if s.err != nil {
		return s.err
	}
	return s.InmemStore.StoreLogs(logs)
}

func (s *store) GetUint64(key []byte) (uint64, error) {
	if s.err != nil {
		return 0, s.err
	}
	return s.InmemStore.GetUint64(key)
}

func (s *store) IsMonotonic() bool { return s.monotonic }

// watched is a watchdog over a store, with what it reported.
type watched struct {
	*Watchdog
	store  *store
	logs   raft.LogStore
	stable raft.StableStore
	stalls []*StallError
	errs   []error
	told   atomic.Int32
}

func watch(t *testing.T, limit time.Duration) *watched {
	t.Helper()
	w := &watched{store: &store{InmemStore: raft.NewInmemStore()}}
	w.Watchdog = Watch(Config{
		Limit: limit,
		OnStall: func(e *StallError) {
			w.stalls = append(w.stalls, e)
			w.told.Add(1)
		},
		OnError: func(err error) {
			w.errs = append(w.errs, err)
			w.told.Add(1)
		},
	})
	t.Cleanup(w.Close)
	w.logs, w.stable = w.LogStore(w.store), w.StableStore(w.store)
	return w
}

func one(index uint64) []*raft.Log { return []*raft.Log{{Index: index, Term: 1}} }

func TestStall(t *testing.T) {
	t.Parallel()
	t.Run("R12_a_hanging_write_is_reported_once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := watch(t, 5*time.Second)
			w.store.hang = make(chan struct{})
			done := make(chan error)
			for i := range uint64(2) {
				go func() { done <- w.logs.StoreLogs(one(i + 1)) }()
			}
			<-time.After(5 * time.Second)
			synctest.Wait()
			if n := w.told.Load(); n != 0 {
				t.Errorf("reported %d times within the limit", n)
			}
			<-time.After(30 * time.Second)
			synctest.Wait()
			if w.told.Load() != 1 || len(w.stalls) != 1 {
				t.Fatalf("reported %d times, %v, want one stall", w.told.Load(), w.stalls)
			}
			s := w.stalls[0]
			if s.Call != "write log" || s.InFlight > 5500*time.Millisecond || !strings.Contains(s.Error(), "at most 5s") {
				t.Errorf("got %v, want write log within a twentieth of 5 s more than 5 s", s)
			}
			close(w.store.hang)
			if err := errors.Join(<-done, <-done); err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("R12_slow_calls_one_after_another_are_no_stall", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := watch(t, 5*time.Second)
			for i := range uint64(10) {
				w.store.hang = make(chan struct{})
				time.AfterFunc(4*time.Second, func() { close(w.store.hang) })
				if err := w.logs.StoreLogs(one(i + 1)); err != nil {
					t.Fatal(err)
				}
			}
			if n := w.told.Load(); n != 0 {
				t.Errorf("reported %d times, %v", n, w.stalls)
			}
		})
	})
	t.Run("a_process_that_was_stopped_blames_no_disk", func(t *testing.T) {
		w := watch(t, time.Minute)
		id := w.begin("write log")
		// The ticks of a minute that this process did not see are one tick.
		if stall := w.tick(min(time.Hour, 6*time.Second)); stall != nil {
			t.Errorf("after one long tick: got %v", stall)
		}
		w.end(id)
	})
	t.Run("the_limit", func(t *testing.T) {
		for election, want := range map[time.Duration]time.Duration{
			0: 5 * time.Second, 500 * time.Millisecond: 5 * time.Second, 5 * time.Second: 15 * time.Second,
		} {
			if got := StallLimit(election); got != want {
				t.Errorf("election %s: got %s, want %s", election, got, want)
			}
		}
	})
}

func TestError(t *testing.T) {
	t.Parallel()
	t.Run("R14_the_first_error_is_reported_once", func(t *testing.T) {
		t.Parallel()
		w := watch(t, time.Minute)
		w.store.err = errors.New("input/output error")
		for range 3 {
			if err := w.logs.StoreLogs(one(1)); !errors.Is(err, w.store.err) {
				t.Errorf("got %v, want the store's error", err)
			}
		}
		if len(w.errs) != 1 || !errors.Is(w.errs[0], w.store.err) || w.errs[0].Error() != "write log: input/output error" {
			t.Errorf("reported %v, want the first once", w.errs)
		}
	})
	t.Run("answers_are_no_errors", func(t *testing.T) {
		t.Parallel()
		w := watch(t, time.Minute)
		if err := w.logs.GetLog(7, new(raft.Log)); !errors.Is(err, raft.ErrLogNotFound) {
			t.Errorf("missing entry: got %v, want log not found", err)
		}
		if _, err := w.stable.Get([]byte("none")); err == nil || err.Error() != "not found" {
			t.Errorf("missing key: got %v, want not found, as raft compares it", err)
		}
		w.store.err = errors.New("not found")
		if _, err := w.stable.GetUint64([]byte("none")); err == nil || err.Error() != "not found" {
			t.Errorf("missing number: got %v, want not found", err)
		}
		if w.told.Load() != 0 {
			t.Errorf("reported %v", w.errs)
		}
	})
	t.Run("after_close_the_stores_may_say_what_they_want", func(t *testing.T) {
		t.Parallel()
		w := watch(t, time.Minute)
		w.Close()
		w.store.err = errors.New("database not open")
		if err := w.logs.StoreLogs(one(1)); err == nil || w.told.Load() != 0 {
			t.Errorf("got %v and %d reports, want the error and none", err, w.told.Load())
		}
	})
}

// TestStoresPassThrough: a store under the watchdog does what it does without.
func TestStoresPassThrough(t *testing.T) {
	t.Parallel()
	w := watch(t, time.Minute)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(w.logs.StoreLog(&raft.Log{Index: 1, Term: 1, Data: []byte("x")}))
	must(w.logs.StoreLogs([]*raft.Log{{Index: 2}, {Index: 3}}))
	must(w.logs.DeleteRange(3, 3))
	first, err := w.logs.FirstIndex()
	must(err)
	last, err := w.logs.LastIndex()
	must(err)
	var log raft.Log
	must(w.logs.GetLog(1, &log))
	if first != 1 || last != 2 || string(log.Data) != "x" {
		t.Errorf("got first %d, last %d, data %q, want 1, 2, x", first, last, log.Data)
	}
	must(w.stable.Set([]byte("k"), []byte("v")))
	must(w.stable.SetUint64([]byte("n"), 7))
	value, err := w.stable.Get([]byte("k"))
	must(err)
	number, err := w.stable.GetUint64([]byte("n"))
	must(err)
	if string(value) != "v" || number != 7 {
		t.Errorf("got %q and %d, want v and 7", value, number)
	}
	for _, want := range []bool{false, true} {
		w.store.monotonic = want
		if got := w.logs.(raft.MonotonicLogStore).IsMonotonic(); got != want {
			t.Errorf("monotonic: got %v, want %v", got, want)
		}
	}
	if w.LogStore(raft.NewInmemStore()).(raft.MonotonicLogStore).IsMonotonic() {
		t.Error("a store that does not say so is monotonic")
	}
}

func BenchmarkWatch(b *testing.B) {
	w := Watch(Config{OnStall: func(*StallError) {}, OnError: func(error) {}})
	defer w.Close()
	b.ReportAllocs()
	for b.Loop() {
		_ = w.watch("write log", never, func() error { return nil })
	}
}
