package window

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// requireSum compares what lies in the window.
func requireSum(t rapid.TB, c *Counts, now, wantTotal, wantRetries int64) {
	t.Helper()
	if total, retries := c.Sum(now); total != wantTotal || retries != wantRetries {
		t.Fatalf("in slice %d: %d, %d retries, want %d, %d", now, total, retries, wantTotal, wantRetries)
	}
}

func TestWindowSlides(t *testing.T) {
	t.Run("S1-21_an_event_leaves_at_300_s", func(t *testing.T) {
		length := Length(5 * time.Minute)
		if length != time.Second {
			t.Fatalf("a slice of five minutes is %v, want 1s", length)
		}
		for _, event := range []time.Duration{0, 1, time.Second - 1, time.Second, 17*time.Second + 5} {
			var c Counts
			c.Add(At(int64(event), length), 1, 1)
			// Less than one slice early, never late.
			for _, at := range []struct {
				after time.Duration
				want  int64
			}{{0, 1}, {299 * time.Second, 1}, {300 * time.Second, 0}, {time.Hour, 0}} {
				start := event.Truncate(time.Second)
				requireSum(t, &c, At(int64(start+at.after), length), at.want, at.want)
			}
			requireSum(t, &c, At(int64(event+300*time.Second), length), 0, 0)
		}
	})
	t.Run("a_later_slice_counts", func(t *testing.T) {
		var c Counts
		c.Add(11, 3, 1)
		requireSum(t, &c, 10, 3, 1)
		requireSum(t, &c, 310, 3, 1)
		requireSum(t, &c, 311, 0, 0)
	})
}

func TestAt(t *testing.T) {
	for _, c := range []struct {
		now    int64
		length time.Duration
		want   int64
	}{
		{0, time.Second, 0},
		{999_999_999, time.Second, 0},
		{1_000_000_000, time.Second, 1},
		{-1, time.Second, -1},
		{-1_000_000_000, time.Second, -1},
		{7, Length(0), 7},
	} {
		if got := At(c.now, c.length); got != c.want {
			t.Errorf("At(%d, %v) = %d, want %d", c.now, c.length, got, c.want)
		}
	}
}

func TestInReach(t *testing.T) {
	for _, c := range []struct {
		now, slice int64
		want       bool
	}{
		{1000, 1000, true},
		{1000, 1001, true},
		{1000, 1300, true},
		{1000, 1301, false},
		{1000, math.MaxInt64, false},
		{1000, 701, true},
		{1000, 700, false},
		{1000, math.MinInt64 + Ahead, false},
		{0, -299, true},
	} {
		if got := InReach(c.now, c.slice); got != c.want {
			t.Errorf("InReach(%d, %d) = %v, want %v", c.now, c.slice, got, c.want)
		}
	}
}

func TestCumulativeReports(t *testing.T) {
	t.Run("T29_order_loss_and_repeats_do_no_harm", func(t *testing.T) {
		reports := [][2]int64{{10, 1}, {20, 5}, {30, 5}}
		for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {0, 2, 1}, {0, 2, 2, 0}, {2}, {1, 2, 1}} {
			var c Counts
			for _, i := range order {
				c.SetMax(5, reports[i][0], reports[i][1])
			}
			requireSum(t, &c, 5, 30, 5)
		}
	})
}

func TestCountsNeverOverflow(t *testing.T) {
	var c Counts
	c.Add(1, math.MaxInt64, 1)
	c.Add(1, 1, math.MaxInt64)
	c.Add(2, math.MaxInt64, math.MaxInt64)
	requireSum(t, &c, 2, math.MaxInt64, math.MaxInt64)
}

func TestDropFreesMemory(t *testing.T) {
	var c Counts
	for slice := range int64(1000) {
		c.Add(slice, 1, 0)
		c.Drop(slice)
		if c.Len() > Slices {
			t.Fatalf("%d slices at %d, want at most %d", c.Len(), slice, Slices)
		}
	}
	requireSum(t, &c, 999, Slices, 0)
	if c.Drop(5000); c.Len() != 0 || c.counts != nil {
		t.Errorf("%d slices after the window, want none", c.Len())
	}
}

func TestCloneIsDeep(t *testing.T) {
	var c Counts
	c.Add(1, 1, 1)
	before := c.Clone()
	c.Add(1, 1, 1)
	requireSum(t, &before, 1, 1, 1)
}

// TestCountsAgreeWithAMap compares every operation with a map of slices.
func TestCountsAgreeWithAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c Counts
		want := map[int64][2]int64{}
		for range rapid.IntRange(1, 60).Draw(t, "operations") {
			slice := rapid.Int64Range(0, 900).Draw(t, "slice")
			total, retries := rapid.Int64Range(0, 9).Draw(t, "total"), rapid.Int64Range(0, 9).Draw(t, "retries")
			had := want[slice]
			switch rapid.IntRange(0, 3).Draw(t, "operation") {
			case 0, 1:
				c.Add(slice, total, retries)
				want[slice] = [2]int64{had[0] + total, had[1] + retries}
			case 2:
				c.SetMax(slice, total, retries)
				want[slice] = [2]int64{max(had[0], total), max(had[1], retries)}
			case 3:
				c.Drop(slice)
				for old := range want {
					if old <= slice-Slices {
						delete(want, old)
					}
				}
			}
			if c.Len() != len(want) {
				t.Fatalf("%d slices, want %d", c.Len(), len(want))
			}
			requireMap(t, &c, want)
			now := rapid.Int64Range(0, 1300).Draw(t, "now")
			total, retries = 0, 0
			for slice, one := range want {
				if slice > now-Slices {
					total, retries = total+one[0], retries+one[1]
				}
			}
			requireSum(t, &c, now, total, retries)
		}
	})
}

// requireMap walks the counts, which must ascend and be those of the map.
func requireMap(t rapid.TB, c *Counts, want map[int64][2]int64) {
	t.Helper()
	last := int64(math.MinInt64)
	c.Walk(func(slice, total, retries int64) {
		if slice <= last || want[slice] != [2]int64{total, retries} {
			t.Fatalf("slice %d after %d: %d, %d, want %v", slice, last, total, retries, want[slice])
		}
		if a, b := c.Slice(slice); a != total || b != retries {
			t.Fatalf("Slice(%d) = %d, %d, want %d, %d", slice, a, b, total, retries)
		}
		last = slice
	})
	if total, retries := c.Slice(last + 1); last < math.MaxInt64 && (total != 0 || retries != 0) {
		t.Fatalf("Slice(%d) = %d, %d, want nothing", last+1, total, retries)
	}
}

func BenchmarkSum(b *testing.B) {
	var c Counts
	for slice := range int64(Slices) {
		c.Add(slice, 2, 1)
	}
	for b.Loop() {
		c.Sum(Slices)
	}
}
