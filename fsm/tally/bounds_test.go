package tally

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/window"
)

// reload is the tally that a node has which was restored from a snapshot.
func (t *Tally) reload() (Tally, error) {
	saved := &logv1.SnapshotClient{Name: "c"}
	t.Save(saved)
	return Load(saved)
}

// TestG10ThrottledAheadOfTheTime: a node that went on alone while the others were down
// reports slices that are ahead of the authority's time. A client that was throttled in
// every minute of the hour before is restored all the same.
func TestG10ThrottledAheadOfTheTime(t *testing.T) {
	t.Parallel()
	t.Run("G10", func(t *testing.T) {
		t.Parallel()
		one := New(time.Second)
		for second := int64(3600); second < 7200; second += 20 {
			one.report(at(second), Process{"a", 1}, Report{Slice: second, Count: Count{Throttled: 1}})
		}
		for ahead := range int64(window.Ahead) {
			r := Report{Slice: 7200 + ahead, Count: Count{Throttled: 1}}
			one.report(at(7200), Process{"b", 1}, r)
			one.report(at(7200), Process{"b", 1}, r)
		}
		loaded, err := one.reload()
		if err != nil || !loaded.Equal(&one) {
			t.Fatalf("%d minutes are not restored: %v", len(one.minutes), err)
		}
		// Those of the minute that is just leaving the hour are gone.
		if got := one.Recent(at(7200)).Throttled; got != 59*3+window.Ahead {
			t.Errorf("%d throttled in the hour, want %d", got, 59*3+window.Ahead)
		}
	})
}

// TestG10Restored: whatever was reported, and however often the retry budget got
// another window, the tally is bounded and can be restored.
func TestG10Restored(t *testing.T) {
	t.Parallel()
	t.Run("G10", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(t *rapid.T) {
			lengths := []time.Duration{time.Millisecond, time.Second, 20 * time.Second, time.Minute, 2016 * time.Second}
			one, now := New(time.Second), bucket.Instant(10*24*time.Hour)
			for range rapid.IntRange(1, 12).Draw(t, "steps") {
				switch rapid.IntRange(0, 2).Draw(t, "what") {
				case 0:
					now += bucket.Instant(rapid.Int64Range(0, int64(3*time.Hour)).Draw(t, "passes"))
					one.Drop(now)
				case 1:
					one.Reslice(now, rapid.SampledFrom(lengths).Draw(t, "length"))
				default:
					from := Process{rapid.SampledFrom([]string{"a", "b"}).Draw(t, "node"), 1}
					first := rapid.Int64Range(-window.Slices+1, window.Ahead).Draw(t, "first")
					count := rapid.SampledFrom([]int64{1, MaxCount}).Draw(t, "count")
					for i := first; i <= window.Ahead; i++ {
						one.report(now, from, Report{
							Slice: window.At(int64(now), one.length) + i,
							Count: Count{count, count, count, count, count}, Fault: Fault{"429", count},
						})
					}
				}
				if loaded, err := one.reload(); err != nil || !loaded.Equal(&one) {
					t.Fatalf("not restored: %v", err)
				}
			}
		})
	})
}
