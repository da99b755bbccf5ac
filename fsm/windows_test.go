package fsm_test

import (
	"fmt"
	"io"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/fsmtest"
)

// hourly is a quota by the hour.
func hourly(amount int64) *logv1.Limit {
	limit := fsmtest.Keyed("hourly", &logv1.Dimension{
		Name: "requests", Interval: 1, Burst: amount, MaxDebt: amount, MaxOpen: amount,
	})
	limit.Kind = logv1.Kind_KIND_QUOTA
	limit.Calendar = &logv1.Calendar{Period: logv1.Calendar_PERIOD_HOUR, Timezone: "UTC"}
	return limit
}

// hour is an entry at the beginning of an hour that rolls the window; authority
// time and the wall clock go by alike.
func hour(n int, operations ...*logv1.Operation) *logv1.Entry {
	starts := int64(n) * int64(time.Hour)
	roll := &logv1.Operation{Kind: &logv1.Operation_RollWindow{RollWindow: &logv1.RollWindow{
		Limit: "hourly", Starts: starts, Ends: starts + int64(time.Hour),
	}}}
	return &logv1.Entry{Stamp: starts, Wall: starts, Operations: append([]*logv1.Operation{roll}, operations...)}
}

func snapshotSize(t *testing.T, d *fsmtest.Driver) int64 {
	t.Helper()
	snapshot := d.Snapshot()
	defer snapshot.Release()
	size, err := snapshot.WriteTo(io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return size
}

// TestG10WindowsDoNotPileUp: a month of windows by the hour leaves neither keys of
// windows that are over nor what they were counted by, also beside a lease that is
// renewed for ever.
func TestG10WindowsDoNotPileUp(t *testing.T) {
	t.Parallel()
	t.Run("G10", func(t *testing.T) {
		t.Parallel()
		d := fsmtest.New(t)
		d.At(0, fsmtest.Apply(hourly(100)))
		const month, each = 31 * 24, 20
		var first int64
		for n := range month {
			entry := hour(n)
			if n == 0 {
				entry.Operations = append(entry.Operations, fsmtest.Track("held", fsmtest.Charge("hourly", "held", "requests", 1)))
			} else {
				entry.Operations = append(entry.Operations, fsmtest.Renew("held", uint64(n), 2*time.Hour))
			}
			for i := range each {
				// Most of them never come back.
				key := fmt.Sprintf("key-%d", n*each/2+i)
				entry.Operations = append(entry.Operations, fsmtest.Acquire("", fsmtest.Charge("hourly", key, "requests", 60)))
			}
			for i, result := range d.Entry(entry)[2:] {
				if !result.GetAcquire().GetGranted() {
					t.Fatalf("hour %d, key %d: %v", n, i, result)
				}
			}
			// Idle keys go with the next entry.
			d.Entry(&logv1.Entry{Stamp: entry.GetStamp() + int64(time.Second), Wall: entry.GetWall() + int64(time.Second)})
			if keys := d.Counts().Keys; keys > each+1 {
				t.Fatalf("hour %d: %d keys, at most %d", n, keys, each+1)
			}
			if n == 40 {
				first = snapshotSize(t, d)
			}
		}
		if last := snapshotSize(t, d); last > first+first/10 {
			t.Errorf("%d bytes after a month, %d after the first hours", last, first)
		}
	})
}

// TestManyKeysRollInPieces: the keys of a window that is over don't hold up one entry.
func TestManyKeysRollInPieces(t *testing.T) {
	t.Parallel()
	d := fsmtest.New(t)
	limit := hourly(100)
	d.Entry(hour(1, fsmtest.Apply(limit)))
	d.Entry(hour(1))
	const many = 70_000
	for first := 0; first < many; first += 512 {
		entry := &logv1.Entry{Stamp: int64(time.Hour) + 1}
		for i := first; i < min(first+512, many); i++ {
			entry.Operations = append(entry.Operations, fsmtest.Acquire("", fsmtest.Charge("hourly", keyName(i), "requests", 1)))
		}
		d.Apply(d.Index()+1, entry)
	}
	d.Apply(d.Index()+1, hour(2))
	for ticks := 0; ; ticks++ {
		keys := d.Counts().Keys
		if keys == 0 {
			break
		}
		if ticks > 5 {
			t.Fatalf("%d keys are left after %d ticks", keys, ticks)
		}
		d.Apply(d.Index()+1, &logv1.Entry{Stamp: 2*int64(time.Hour) + int64(ticks)})
	}
}

// TestDeletedQuotasAreForgotten: nobody rolls the windows of a limit that is gone;
// after the longest window there may be it goes with its keys.
func TestDeletedQuotasAreForgotten(t *testing.T) {
	t.Parallel()
	d := fsmtest.WithShadow(t)
	d.At(0, fsmtest.Apply(hourly(100)))
	d.Entry(hour(0, fsmtest.Acquire("", fsmtest.Charge("hourly", "a", "requests", 60))))
	d.At(time.Minute, fsmtest.Operation(&logv1.ApplyLimits{Delete: []string{"hourly"}}))
	d.At(24*time.Hour, fsmtest.Apply(hourly(100)))
	if a := d.Acquire(24*time.Hour, fsmtest.Acquire("", fsmtest.Charge("hourly", "a", "requests", 60))); a.GetGranted() {
		t.Error("A12: it was deleted and came back in its window, and what was used is not")
	}
	d.At(25*time.Hour, fsmtest.Operation(&logv1.ApplyLimits{Delete: []string{"hourly"}}))
	over := 25*time.Hour + 33*24*time.Hour
	if d.At(over - 1); d.Counts().Keys != 1 {
		t.Errorf("%d keys a nanosecond before the longest window is over", d.Counts().Keys)
	}
	d.At(over)
	if c := d.Counts(); c.Limits != 0 || c.Keys != 0 {
		t.Errorf("%d limits and %d keys are left", c.Limits, c.Keys)
	}
}

// TestOverridesAtWork: keys with numbers of their own beside others, through a change
// and back.
func TestOverridesAtWork(t *testing.T) {
	t.Parallel()
	limit := fsmtest.Keyed("api", fsmtest.Dimension(t, "requests", "1/1s", 10))
	big := proto.CloneOf(limit)
	big.Overrides = []*logv1.Override{
		{Value: "big", Dimensions: []*logv1.Dimension{fsmtest.Dimension(t, "requests", "10/1s", 100)}},
		{Value: "trial-", Prefix: true, Dimensions: []*logv1.Dimension{fsmtest.Dimension(t, "requests", "0/1s", 0)}},
	}
	take := func(d *fsmtest.Driver, at time.Duration, key string, n int64) *logv1.AcquireResult {
		return d.Acquire(at, fsmtest.Acquire("", fsmtest.Charge("api", key, "requests", n)))
	}
	t.Run("A06_a_prefix_may_have_none", func(t *testing.T) {
		t.Parallel()
		d := fsmtest.WithShadow(t)
		d.At(0, fsmtest.Apply(big))
		if a := take(d, 0, "trial-7", 1); a.GetDenials()[0].GetReason() != logv1.Reason_REASON_ZERO_LIMIT {
			t.Errorf("%v, want ZERO_LIMIT", a)
		}
		if !take(d, 0, "trial", 10).GetGranted() || !take(d, 0, "big", 100).GetGranted() {
			t.Error("others have not their numbers")
		}
	})
	t.Run("T14_an_override_is_no_gift", func(t *testing.T) {
		t.Parallel()
		d := fsmtest.WithShadow(t)
		d.At(0, fsmtest.Apply(limit))
		d.At(time.Second, fsmtest.Apply(big))
		// It has as yet what every key had, and then 10 a second.
		if take(d, time.Second, "big", 11).GetGranted() || !take(d, time.Second, "big", 10).GetGranted() {
			t.Error("a new override has not 10 at first")
		}
		if a := take(d, time.Second, "big", 11); a.GetDenials()[0].GetRetryAfter() != int64(1100*time.Millisecond) {
			t.Errorf("%v, want 1.1s", a)
		}
		// Without it there is room for 10, and with it again they are still 10.
		d.At(20*time.Second, fsmtest.Apply(limit))
		d.At(20*time.Second, fsmtest.Apply(big))
		if take(d, 20*time.Second, "big", 11).GetGranted() || !take(d, 20*time.Second, "big", 10).GetGranted() {
			t.Error("T13: it went away and came back with other than 10")
		}
		// One that had none has none at first when its override goes.
		d.At(21*time.Second, fsmtest.Apply(limit))
		if take(d, 22*time.Second, "trial-7", 2).GetGranted() || !take(d, 22*time.Second, "trial-7", 1).GetGranted() {
			t.Error("after a second without its override it has other than 1")
		}
	})
}

// TestRaisingALimitIsMonotone: a higher number in the file is in force with its entry,
// and nobody is denied who would have been served before.
func TestRaisingALimitIsMonotone(t *testing.T) {
	t.Parallel()
	t.Run("S3-13", func(t *testing.T) {
		t.Parallel()
		for _, raise := range []time.Duration{0, 1500 * time.Millisecond, 7 * time.Second} {
			old, raised := fsmtest.New(t), fsmtest.New(t)
			low := fsmtest.Limit("api", fsmtest.Dimension(t, "requests", "10/1s", 10))
			high := fsmtest.Limit("api", fsmtest.Dimension(t, "requests", "100/1s", 100))
			old.At(0, fsmtest.Apply(low))
			raised.At(0, fsmtest.Apply(low))
			more := int64(0)
			for at := time.Duration(0); at < 10*time.Second; at += 50 * time.Millisecond {
				if at == raise {
					raised.At(at, fsmtest.Apply(high))
				}
				one := fsmtest.Acquire("", fsmtest.Charge("api", "", "requests", 1+int64(at/(50*time.Millisecond))%3))
				before := old.Acquire(at, one).GetGranted()
				if granted := raised.Acquire(at, one).GetGranted(); before && !granted {
					t.Fatalf("raised at %v: at %v it is denied with the higher limit only", raise, at)
				} else if granted && !before {
					more++
				}
			}
			if more < 20 {
				t.Errorf("raised at %v: %d more were granted: the higher limit is not in force", raise, more)
			}
		}
	})
}
