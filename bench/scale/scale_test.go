package scale

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/quorlease/quorlease/bench/load"
	"github.com/quorlease/quorlease/bench/scale/page"
	"github.com/quorlease/quorlease/bench/share"
	"github.com/quorlease/quorlease/bench/stat"
)

func TestMain(m *testing.M) {
	// Processes are started by one goroutine that stays for good.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/quorlease/quorlease/bench.doPinned"))
}

func TestValidate(t *testing.T) {
	t.Parallel()
	good, quick := Default(), Default()
	quick.Quick()
	for name, c := range map[string]Config{"default": good, "quick": quick} {
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for want, change := range map[string]func(*Config){
		`--parts "disks" is none of nodes, keys, callers, entries, snapshots`: func(c *Config) {
			c.Parts = []Part{"disks"}
		},
		`--parts is empty: some of nodes, keys, callers, entries, snapshots`: func(c *Config) {
			c.Parts = nil
		},
		`--nodes 10 is outside 1 to 9`:             func(c *Config) { c.Nodes = []int{1, 10} },
		`--nodes has 0 numbers, 1 to 20`:           func(c *Config) { c.Nodes = nil },
		`--keys 1000001 is outside 1 to 1000000`:   func(c *Config) { c.Keys = []int{1_000_001} },
		`--keys has a number twice`:                func(c *Config) { c.Keys = []int{5, 1, 5} },
		`--callers 0 is outside 1 to 10000`:        func(c *Config) { c.Callers = []int{0} },
		`--buckets 999 is outside 1000 to 1000000`: func(c *Config) { c.Buckets = []int{999} },
		`--share 0.5% is outside 1% to 100%`:       func(c *Config) { c.Share = 50 },
		`--rounds 0 is outside 1 to 100`:           func(c *Config) { c.Rounds = 0 },
		`--length 10ms is outside 100ms to 1m0s`:   func(c *Config) { c.Length = 10 * time.Millisecond },
		`--warmup -1s is outside 0s to 1m0s`:       func(c *Config) { c.Warmup = -time.Second },
		`--timeout 0s is outside 1ms to 1m0s`:      func(c *Config) { c.Timeout = 0 },
	} {
		c := Default()
		change(&c)
		if err := c.Validate(); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestShape: what all keys get together is more than callers take, each has enough for
// escrow on nine nodes, and many keys hardly get anything.
func TestShape(t *testing.T) {
	t.Parallel()
	for _, keys := range []int{1, fewKeys, 1000, hotMost} {
		b := shape(keys)
		if b.Interval != time.Second || b.Rate*int64(keys) < enough*99/100 || b.Burst < 9*100 || b.Burst < 10*b.Rate {
			t.Errorf("%d keys: %+v", keys, b)
		}
	}
	if b := shape(keysMost); b.Rate != 1 || b.Interval != time.Hour {
		t.Errorf("a million keys: %+v", b)
	}
}

// TestGaps: only the measured part counts, to its end.
func TestGaps(t *testing.T) {
	t.Parallel()
	g := newGaps(100 * time.Millisecond)
	from := g.zero.Add(time.Second)
	at := func(ms int) time.Time { return from.Add(time.Duration(ms) * time.Millisecond) }
	g.grant(at(-50))
	g.began(context.Background(), from)
	for _, ms := range []int{-1, 5, 10, 40, 70, 130} {
		g.grant(at(ms))
	}
	if got := g.end(); got != 30*time.Millisecond {
		t.Errorf("got %v, want 30 ms", got)
	}
	silent := newGaps(time.Second)
	silent.began(context.Background(), time.Now())
	if got := silent.end(); got != time.Second {
		t.Errorf("nobody was granted anything: %v, want 1 s", got)
	}
}

const metrics = `# TYPE quorlease_snapshot_pause_seconds histogram
quorlease_snapshot_pause_seconds_bucket{le="0.001"} 1
quorlease_snapshot_pause_seconds_bucket{le="0.002"} 3
quorlease_snapshot_pause_seconds_bucket{le="0.004"} 4
quorlease_snapshot_pause_seconds_bucket{le="+Inf"} 4
quorlease_snapshot_pause_seconds_sum 0.0075
quorlease_snapshot_pause_seconds_count 4
quorlease_log_entries_total 1.5e+06
`

func TestExported(t *testing.T) {
	t.Parallel()
	var e, before exported
	if err := e.read(strings.NewReader(metrics)); err != nil {
		t.Fatal(err)
	}
	if e.count != 4 || e.sum != 7500*time.Microsecond || e.entries != 1_500_000 || len(e.ends) != 3 {
		t.Errorf("read %+v", e)
	}
	// The others took at least 0, 1 and 1 ms: the longest may have taken 5.5 ms of the
	// sum, but is within 4 ms.
	if got := e.longest(); got != 4*time.Millisecond {
		t.Errorf("the longest was at most %v, want 4 ms", got)
	}
	if err := before.read(strings.NewReader(strings.NewReplacer("} 3", "} 2", "} 4", "} 3", "count 4", "count 3",
		"0.0075", "0.0042").Replace(metrics))); err != nil {
		t.Fatal(err)
	}
	one := e.since(&before)
	// Its range ends before its part of the sum, which was measured less exactly.
	if one.count != 1 || one.entries != 0 || one.sum != 3300*time.Microsecond || one.longest() != 2*time.Millisecond {
		t.Errorf("one: %+v, at most %v", one, one.longest())
	}
	if got := (&exported{}).longest(); got != 0 {
		t.Errorf("none took %v", got)
	}
	for _, text := range []string{"", "quorlease_snapshot_pause_seconds_count many\n", "quorlease_log_entries_total x\n"} {
		if err := new(exported).read(strings.NewReader(text)); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

// TestRounds: every other round goes backwards.
func TestRounds(t *testing.T) {
	t.Parallel()
	c := Default()
	r := &run{config: &c}
	var order []int64
	err := r.rounds([]page.Point{{At: 1}, {At: 3}}, func(p *page.Point, _ int) error {
		order = append(order, p.At)
		return nil
	})
	if want := []int64{1, 3, 3, 1, 1, 3}; err != nil || !slices.Equal(order, want) {
		t.Errorf("%v, %v; want %v", order, err, want)
	}
	err = r.rounds([]page.Point{{At: 7}}, func(*page.Point, int) error { return context.Canceled })
	if err == nil || err.Error() != "7, round 1: context canceled" {
		t.Errorf("got %v", err)
	}
}

func TestMerge(t *testing.T) {
	t.Parallel()
	all := &load.Measured{Latencies: stat.NewLatencies(), Failures: map[string]int64{}}
	for range 2 {
		one := &load.Measured{
			Granted: 3, Denied: 2, Failed: 1, Escrow: 1, PerCaller: []int64{1, 2}, Latencies: stat.NewLatencies(),
			Failures: map[string]int64{"UNAVAILABLE": 1},
		}
		one.Latencies.Record(time.Millisecond)
		merge(all, one)
	}
	if all.Granted != 6 || all.Denied != 4 || all.Failed != 2 || all.Escrow != 2 || all.Latencies.Count() != 2 {
		t.Errorf("%+v", all)
	}
	if diff := cmp.Diff([]int64{2, 4}, all.PerCaller); diff != "" || all.Failures["UNAVAILABLE"] != 2 {
		t.Errorf("%v, callers %s", all.Failures, diff)
	}
}

// TestNothingStays: a run that can't start its nodes, or has no groups, ends with what
// went wrong, and leaves nothing behind.
func TestNothingStays(t *testing.T) {
	t.Parallel()
	c := Default()
	c.Quick()
	c.Dir, c.Binary, c.Mount = t.TempDir(), "/nowhere/quorlease", t.TempDir()
	var said strings.Builder
	c.Progress = &said
	if _, err := Run(t.Context(), c); err == nil || !strings.HasPrefix(err.Error(), "nodes: 1, round 1: start node n1: ") {
		t.Errorf("got %v", err)
	}
	want := "nodes get no share of a processor each: " + share.ErrUnavailable.Error()
	if !strings.HasPrefix(said.String(), want) {
		t.Errorf("said %q, want %s", said.String(), want)
	}
}
