package tally

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/digest"
)

// at is a moment in seconds.
func at(seconds int64) bucket.Instant { return bucket.Instant(seconds * int64(time.Second)) }

// add reports where it counts.
func (t *Tally) report(now bucket.Instant, from Process, r Report) {
	if r.Counts(now, t.length) {
		t.Add(now, from, r)
	}
}

func sumOf(t *Tally) uint64 {
	sum := digest.New(1)
	t.Digest(&sum)
	return sum.Value()
}

// drawReports are cumulative reports of some processes, in the order in which
// they were made.
func drawReports(t *rapid.T) []made {
	var list []made
	counts := make(map[string]Report)
	for range rapid.IntRange(1, 40).Draw(t, "reports") {
		from := Process{rapid.SampledFrom([]string{"a", "b"}).Draw(t, "node"), rapid.Uint64Range(1, 2).Draw(t, "boot")}
		slice := rapid.Int64Range(100, 104).Draw(t, "slice")
		key := fmt.Sprint(from, slice)
		r := counts[key]
		r.Slice = slice
		more := func() int64 { return rapid.Int64Range(0, 3).Draw(t, "more") }
		r.Count = r.Count.Plus(Count{more(), 0, more(), more(), more()})
		r.Count.Retries = r.Count.Total / 2
		if rapid.Bool().Draw(t, "fault") {
			r.Fault = Fault{rapid.SampledFrom([]string{"429", "timeout"}).Draw(t, "text"), r.Fault.Times + 1}
		}
		counts[key] = r
		list = append(list, made{from, r})
	}
	return list
}

type made struct {
	from Process
	Report
}

// TestT29OrderLossAndRepetition: whatever order reports arrive in, how often, and
// which of them are lost if a later one is not, the tally is the same.
func TestT29OrderLossAndRepetition(t *testing.T) {
	t.Parallel()
	t.Run("T29", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(t *rapid.T) {
			reports := drawReports(t)
			want := New(time.Second)
			for _, r := range reports {
				want.report(at(105), r.from, r.Report)
			}
			got := New(time.Second)
			shuffled := append(append([]made(nil), reports...), reports...)
			seed := rapid.Uint64().Draw(t, "seed")
			rand.New(rand.NewPCG(seed, 1)).Shuffle(len(shuffled), func(i, j int) {
				shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
			})
			for _, r := range shuffled {
				got.report(at(105), r.from, r.Report)
			}
			if !got.Equal(&want) || sumOf(&got) != sumOf(&want) {
				t.Fatalf("%+v, want %+v", got, want)
			}
		})
	})
}

func TestSavedIsLoaded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		one := New(time.Second)
		for _, r := range drawReports(t) {
			one.report(at(105), r.from, r.Report)
		}
		saved := &logv1.SnapshotClient{Name: "c"}
		one.Save(saved)
		data, err := proto.Marshal(saved)
		if err != nil {
			t.Fatal(err)
		}
		read := &logv1.SnapshotClient{}
		if err := proto.Unmarshal(data, read); err != nil {
			t.Fatal(err)
		}
		loaded, err := Load(read)
		if err != nil || !loaded.Equal(&one) || sumOf(&loaded) != sumOf(&one) {
			t.Fatalf("%v: %+v, want %+v", err, loaded, one)
		}
		clone := one.Clone()
		clone.report(at(105), Process{"z", 1}, Report{Slice: 105, Count: Count{Total: 1}})
		if clone.Equal(&one) {
			t.Fatal("a clone shares its counts")
		}
	})
}

func TestWindow(t *testing.T) {
	t.Parallel()
	t.Run("S1-21", func(t *testing.T) {
		t.Parallel()
		one := New(time.Second)
		one.report(at(1000), Process{"a", 1}, Report{Slice: 1000, Count: Count{Total: 3, Retries: 1, Denied: 2, Early: 1}})
		one.report(at(1010), Process{"b", 1}, Report{Slice: 1010, Count: Count{Total: 4}})
		for _, c := range []struct{ seconds, total, retries int64 }{
			{1010, 7, 1},
			{1299, 7, 1},
			{1300, 4, 0},
			{1309, 4, 0},
			{1310, 0, 0},
		} {
			total, retries := one.Admitted(at(c.seconds))
			recent := one.Recent(at(c.seconds))
			if total != c.total || retries != c.retries || recent.Total != c.total {
				t.Errorf("at %d s: %d of %d, recent %+v; want %d of %d", c.seconds, retries, total, recent, c.retries, c.total)
			}
		}
		counts := one.Window()
		if total, retries := counts.Sum(1200); total != 7 || retries != 1 {
			t.Errorf("merged: %d of %d, want 1 of 7", retries, total)
		}
		if one.Over(at(1309)) || one.Due() != at(1310) || !one.Over(at(1310)) {
			t.Errorf("due at %v, want 1310 s", time.Duration(one.Due()))
		}
	})
	t.Run("what_is_out_of_it_does_not_count", func(t *testing.T) {
		t.Parallel()
		for _, r := range []Report{
			{Slice: 700, Count: Count{Total: 1}},
			{Slice: -1, Count: Count{Total: 1}},
			{Slice: 1000},
			{Slice: 1301, Count: Count{Denied: 1}},
		} {
			if r.Counts(at(1000), time.Second) {
				t.Errorf("%+v counts", r)
			}
		}
	})
	t.Run("T29_a_report_ahead_of_the_time_comes_again", func(t *testing.T) {
		t.Parallel()
		one := New(time.Second)
		// The node's clock is four seconds ahead, and its report is repeated until the
		// node sees it applied.
		for now := range int64(4) {
			one.report(at(1000+now), Process{"a", 1}, Report{Slice: 1004, Count: Count{Total: 3, Retries: 2}})
		}
		if total, retries := one.Admitted(at(1004)); total != 3 || retries != 2 {
			t.Errorf("%d of %d, want 2 of 3", retries, total)
		}
		if got := one.Counted(Process{"a", 1}, 1004); got.Total != 3 {
			t.Errorf("%+v are counted in the slice that was reported, want 3", got)
		}
	})
	t.Run("slices_of_another_length", func(t *testing.T) {
		t.Parallel()
		one := New(time.Second)
		for i := range int64(10) {
			one.report(at(100+i), Process{"a", 1}, Report{
				Slice: 100 + i, Count: Count{Total: 2, Retries: 1}, Fault: Fault{"429", i + 1},
			})
		}
		one.Reslice(at(110), 5*time.Second)
		if total, retries := one.Admitted(at(110)); total != 20 || retries != 10 || len(one.sources[0].slices) != 2 {
			t.Errorf("%d of %d in %d slices, want 10 of 20 in 2", retries, total, len(one.sources[0].slices))
		}
		if f := one.Commonest(at(110)); f.Times != 10 {
			t.Errorf("%+v", f)
		}
	})
}

// TestThrottled: throttled answers are shown for an hour, whatever the window.
func TestThrottled(t *testing.T) {
	t.Parallel()
	one := New(time.Second)
	for minute := range int64(90) {
		now := at(minute * 60)
		for _, throttled := range []int64{1, 3, 2} {
			one.report(now, Process{"a", 1}, Report{Slice: minute * 60, Count: Count{Throttled: throttled}})
		}
		want := min(60, minute+1) * 3
		if got := one.Recent(now).Throttled; got != want {
			t.Fatalf("in minute %d: %d throttled, want %d", minute, got, want)
		}
		if len(one.minutes) > hour {
			t.Fatalf("%d minutes are kept", len(one.minutes))
		}
	}
	last := int64(89 * 60)
	one.Drop(at(last + 300))
	if one.Over(at(last+300)) || len(one.sources) != 0 || one.Due() != at(last+3600) {
		t.Errorf("%d sources, due at %v", len(one.sources), time.Duration(one.Due()))
	}
	if got := one.Recent(at(last + 3599)).Throttled; got != 3 {
		t.Errorf("%d throttled after nearly an hour, want 3", got)
	}
	if got := one.Recent(at(last + 3600)).Throttled; got != 0 || !one.Over(at(last+3600)) {
		t.Errorf("%d throttled after an hour, want none", got)
	}
}

// TestFaults: the newest slice's fault counts, and among processes that of the
// one with most.
func TestFaults(t *testing.T) {
	t.Parallel()
	one := New(time.Second)
	say := func(node string, slice int64, text string, times int64) {
		one.report(at(1000), Process{node, 1}, Report{Slice: slice, Count: Count{Total: 1}, Fault: Fault{text, times}})
	}
	say("a", 990, "timeout", 50)
	say("a", 1000, "429", 7)
	say("a", 995, "late", 90)
	say("b", 900, "503", 6)
	if f := one.Commonest(at(1000)); f != (Fault{"429", 7}) {
		t.Errorf("%+v, want 429, 7 times", f)
	}
	say("b", 1000, "503", 8)
	if f := one.Commonest(at(1000)); f != (Fault{"503", 8}) {
		t.Errorf("%+v, want 503, 8 times", f)
	}
	if f := one.Commonest(at(1300)); f != (Fault{}) {
		t.Errorf("%+v after the window, want none", f)
	}
}

// TestG10SourcesAreBounded: a node that restarts all the time takes no more room
// than its last processes.
func TestG10SourcesAreBounded(t *testing.T) {
	t.Parallel()
	t.Run("G10", func(t *testing.T) {
		t.Parallel()
		one := New(time.Second)
		for boot := range uint64(1000) {
			one.report(at(1000+int64(boot)/10), Process{"a", boot}, Report{Slice: 1000 + int64(boot)/10, Count: Count{Total: 1}})
		}
		if len(one.sources) != maxSources {
			t.Errorf("%d sources, want %d", len(one.sources), maxSources)
		}
		if got := one.Counted(Process{"a", 999}, 1099); got.Total != 1 {
			t.Errorf("the last process counts %d, want 1", got.Total)
		}
	})
}

func TestDamagedRecords(t *testing.T) {
	t.Parallel()
	good := func() *logv1.SnapshotClient {
		return &logv1.SnapshotClient{
			Name: "c", SliceLength: 1000,
			Sources: []*logv1.SnapshotSource{
				{Node: "a", Counts: []*logv1.SnapshotCount{{Slice: 1, Total: 1}, {Slice: 2, Total: 1}}, Error: "x", Errors: 1},
				{Node: "b"},
			},
			Minutes: []*logv1.SnapshotCount{{Slice: 1, Throttled: 1}, {Slice: 2, Throttled: 1}},
		}
	}
	if _, err := Load(good()); err != nil {
		t.Fatal(err)
	}
	for name, damage := range map[string]func(*logv1.SnapshotClient){
		"no length":       func(c *logv1.SnapshotClient) { c.SliceLength = 0 },
		"sources":         func(c *logv1.SnapshotClient) { c.Sources = make([]*logv1.SnapshotSource, maxSources+1) },
		"order":           func(c *logv1.SnapshotClient) { c.Sources[1].Node = "a" },
		"no node":         func(c *logv1.SnapshotClient) { c.Sources[0].Node = "" },
		"long error":      func(c *logv1.SnapshotClient) { c.Sources[0].Error = string(make([]byte, MaxFault+1)) },
		"negative errors": func(c *logv1.SnapshotClient) { c.Sources[0].Errors = -1 },
		"error slice":     func(c *logv1.SnapshotClient) { c.Sources[0].ErrorSlice = -1 },
		"slice twice":     func(c *logv1.SnapshotClient) { c.Sources[0].Counts[1].Slice = 1 },
		"negative slice":  func(c *logv1.SnapshotClient) { c.Sources[0].Counts[0].Slice = -1 },
		"negative count":  func(c *logv1.SnapshotClient) { c.Sources[0].Counts[0].Early = -1 },
		"huge count":      func(c *logv1.SnapshotClient) { c.Sources[0].Counts[0].Denied = sumMost + 1 },
		"many slices":     func(c *logv1.SnapshotClient) { c.Sources[0].Counts = make([]*logv1.SnapshotCount, 400) },
		"minute twice":    func(c *logv1.SnapshotClient) { c.Minutes[1].Slice = 1 },
		"empty minute":    func(c *logv1.SnapshotClient) { c.Minutes[0].Throttled = 0 },
		"many minutes":    func(c *logv1.SnapshotClient) { c.Minutes = make([]*logv1.SnapshotCount, 70) },
	} {
		saved := good()
		damage(saved)
		if _, err := Load(saved); err == nil {
			t.Errorf("%s: is loaded", name)
		}
	}
}

func BenchmarkAdmitted(b *testing.B) {
	one := New(time.Second)
	for i := range int64(300) {
		for _, node := range []string{"a", "b", "c"} {
			one.report(at(1000+i), Process{node, 1}, Report{Slice: 1000 + i, Count: Count{Total: 5, Retries: 1}})
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		one.Admitted(at(1299))
	}
}
