package disk

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

const gib = 1 << 30

func TestNeed(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name       string
		total      uint64
		minFree    int64
		minPercent int
		want       uint64
	}{
		{"R14_five_percent_of_a_large_disk", 100 * gib, gib, 5, 5 * gib},
		{"R14_a_gigabyte_of_a_small_one", 10 * gib, gib, 5, gib},
		{"bytes_only", 100 * gib, gib, -1, gib},
		{"percent_only", 100 * gib, -1, 5, 5 * gib},
		{"neither", 100 * gib, -1, -1, 0},
		{"more_than_half", 100 * gib, -1, 99, 50 * gib},
		{"the_largest", ^uint64(0), gib, 50, ^uint64(0) / 100 * 50},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := need(c.total, c.minFree, c.minPercent); got != c.want {
				t.Errorf("need(%d, %d, %d): got %d, want %d", c.total, c.minFree, c.minPercent, got, c.want)
			}
		})
	}
}

func TestSpace(t *testing.T) {
	t.Parallel()
	t.Run("R14_low_and_back_without_flapping", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var free atomic.Uint64
			free.Store(1000)
			var changes []bool
			s, err := WatchSpace(SpaceConfig{
				MinFree: 100, MinPercent: -1,
				Statfs:   func(string) (Usage, error) { return Usage{Free: free.Load(), Total: 10_000}, nil },
				OnChange: func(r SpaceReport) { changes = append(changes, r.Low) },
			})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			for _, step := range []struct {
				free uint64
				low  bool
			}{{100, false}, {99, true}, {0, true}, {100, true}, {109, true}, {110, false}, {100, false}, {99, true}} {
				free.Store(step.free)
				<-time.After(time.Second)
				synctest.Wait()
				if got := s.Last(); s.Low() != step.low || got.Free != step.free || got.Need != 100 {
					t.Errorf("with %d free: got %+v, want low %v", step.free, got, step.low)
				}
			}
			if len(changes) != 3 || !changes[0] || changes[1] || !changes[2] {
				t.Errorf("changes %v, want low, back, low", changes)
			}
		})
	})
	t.Run("low_from_the_first_look", func(t *testing.T) {
		t.Parallel()
		s, err := WatchSpace(SpaceConfig{
			Statfs: func(string) (Usage, error) { return Usage{Free: gib - 1, Total: gib}, nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if !s.Low() {
			t.Errorf("got %+v, want low", s.Last())
		}
	})
	t.Run("an_error_leaves_the_state_as_it_is", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var fails atomic.Bool
			s, err := WatchSpace(SpaceConfig{Statfs: func(string) (Usage, error) {
				if fails.Load() {
					return Usage{}, errors.New("stale file handle")
				}
				return Usage{Free: 1, Total: gib}, nil
			}})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			fails.Store(true)
			<-time.After(10 * time.Second)
			if !s.Low() {
				t.Error("no longer low because nobody could look")
			}
		})
	})
	t.Run("an_error_of_the_first_look", func(t *testing.T) {
		t.Parallel()
		if _, err := WatchSpace(SpaceConfig{Path: t.TempDir() + "/none"}); err == nil {
			t.Error("got no error for a path that does not exist")
		}
	})
	t.Run("the_real_one", func(t *testing.T) {
		t.Parallel()
		u, err := Statfs(t.TempDir())
		if err != nil || u.Total == 0 || u.Free > u.Total {
			t.Errorf("got %+v, %v", u, err)
		}
	})
}
