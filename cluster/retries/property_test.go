package retries_test

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/retries"
	"github.com/quorlease/quorlease/fsm/retry"
	"github.com/quorlease/quorlease/fsm/tally"
)

func drawRule(t *rapid.T) retry.Rule {
	return retry.Rule{
		MaxRetries:  3,
		MaxFraction: rapid.SampledFrom([]int64{0, 500, 2000, 5000, 9999}).Draw(t, "fraction"),
		MinRequests: rapid.SampledFrom([]int64{0, 3, 50}).Draw(t, "min_requests"),
		Window:      300 * time.Second,
		RetryAfter:  time.Minute,
		MinRetries:  rapid.SampledFrom([]int64{0, 0, 1, 7, 100}).Draw(t, "min_retries"),
		MinInterval: 300 * time.Second,
		Scope:       rapid.SampledFrom([]retry.Scope{retry.Client, retry.Retries}).Draw(t, "scope"),
	}
}

// world is a fleet with a network between its nodes and the log.
type world struct {
	*fleet
	// sent are reports on their way: any may arrive first, twice or never.
	sent []*logv1.ReportRetries
}

// step does one random thing and returns whether a retry was admitted, where.
func (w *world) step(t *rapid.T) (*node, bool) {
	n := rapid.SampledFrom(w.nodes).Draw(t, "node")
	switch rapid.SampledFrom([]string{"first", "retry", "retry", "report", "arrive", "lose", "apply"}).Draw(t, "step") {
	case "first":
		for range rapid.IntRange(1, 20).Draw(t, "times") {
			w.ask(n, "c", 0)
		}
	case "retry":
		return n, w.ask(n, "c", 1).Verdict == retries.Admit
	case "report":
		if r := n.Report(time.Duration(w.now)); r != nil {
			w.sent = append(w.sent, r)
		}
	case "arrive":
		if len(w.sent) > 0 {
			w.commit(rapid.SampledFrom(w.sent).Draw(t, "report"))
		}
	case "lose":
		if len(w.sent) > 0 {
			i := rapid.IntRange(0, len(w.sent)-1).Draw(t, "report")
			w.sent = append(w.sent[:i], w.sent[i+1:]...)
		}
	case "apply":
		w.catchUp(n, rapid.IntRange(0, len(w.log)).Draw(t, "to"))
	}
	return n, false
}

func TestG12FleetBound(t *testing.T) {
	t.Parallel()
	t.Run("G12_T30_T49_rule_and_the_parts_not_yet_applied", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(t *rapid.T) {
			w := &world{fleet: newFleet(rapid.IntRange(1, 5).Draw(t, "nodes"), drawRule(t))}
			for range rapid.IntRange(1, 300).Draw(t, "steps") {
				if _, retried := w.step(t); !retried {
					continue
				}
				var parts int64
				for _, n := range w.nodes {
					parts += n.part
				}
				if most := allowed(w.rule, w.total) + parts; w.retried > most {
					t.Fatalf("%d retries of %d requests, the rule allows %d and the parts %d",
						w.retried, w.total, allowed(w.rule, w.total), parts)
				}
			}
		})
	})
	t.Run("G12_over_budget_is_refused_wherever_the_log_is_heard", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(t *rapid.T) {
			w := &world{fleet: newFleet(rapid.IntRange(1, 5).Draw(t, "nodes"), drawRule(t))}
			for range rapid.IntRange(1, 200).Draw(t, "steps") {
				w.step(t)
			}
			w.settle(t)
			want := w.rule.Decide(w.total, w.retried, 0) == retry.Admit
			for _, n := range w.nodes {
				if d := w.ask(n, "c", 0); (d.Verdict == retries.Admit) != want {
					t.Fatalf("node %s: got %v of %d of %d, want admitted: %v", n.name, d, w.retried, w.total, want)
				}
				w.settle(t)
				want = w.rule.Decide(w.total, w.retried, 0) == retry.Admit
			}
		})
	})
}

func TestT29CumulativeReports(t *testing.T) {
	t.Parallel()
	t.Run("T29_T31_lost_repeated_and_overtaken_reports_count_once", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(t *rapid.T) {
			w := &world{fleet: newFleet(rapid.IntRange(1, 5).Draw(t, "nodes"), drawRule(t))}
			for range rapid.IntRange(1, 300).Draw(t, "steps") {
				n, _ := w.step(t)
				if rapid.IntRange(0, 9).Draw(t, "later") == 0 {
					w.now += rapid.Int64Range(1, 3*second).Draw(t, "by")
				}
				if held, _ := n.replica.sum(w.now, "c"); held > w.total {
					t.Fatalf("a replica counts %d of %d", held, w.total)
				}
			}
			w.settle(t)
			for _, n := range w.nodes {
				if total, retried := n.replica.sum(w.now, "c"); total != w.total || retried != w.retried {
					t.Fatalf("node %s counts %d of %d, admitted were %d of %d", n.name, retried, total, w.retried, w.total)
				}
				if clients, slots := n.Kept(); clients != 0 || slots != 0 {
					t.Fatalf("node %s keeps %d clients and %d slots that are applied", n.name, clients, slots)
				}
			}
		})
	})
	t.Run("T29_a_restart_counts_on", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(t *rapid.T) {
			f := newFleet(1, standard())
			n := f.nodes[0]
			var want int64
			for range rapid.IntRange(1, 6).Draw(t, "boots") {
				for range rapid.IntRange(0, 100).Draw(t, "times") {
					if f.ask(n, "c", 0).Verdict == retries.Admit {
						want++
					}
				}
				// All in one slice: without the boot the smaller counts of a later process
				// would vanish under those of the first.
				f.settle(t)
				f.boot(n)
			}
			if total, _ := n.replica.sum(f.now, "c"); total != want {
				t.Fatalf("counted %d, want %d", total, want)
			}
		})
	})
}

func TestT31UntilApplied(t *testing.T) {
	t.Parallel()
	// The own count at each stage of a report, by how much of a part of 17 is
	// left.
	left := func(f *fleet, n *node) (count int) {
		var holds []retries.Hold
		for {
			d, h := f.hold(n, "c", 1)
			if d.Verdict != retries.Admit {
				break
			}
			holds = append(holds, h)
		}
		for _, h := range holds {
			n.Finish(time.Duration(f.now), h, false, tally.Count{})
		}
		return len(holds)
	}
	f := newFleet(3, standard())
	n := f.nodes[0]
	for range 10 {
		f.ask(n, "c", 1)
	}
	check := func(name string, want int) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			if got := left(f, n); got != want {
				t.Errorf("%d retries left, want %d", got, want)
			}
		})
	}
	check("T31_before", 7)
	report := n.Report(0)
	check("T31_sent", 7)
	f.commit(report)
	f.catchUp(f.nodes[1], 1)
	check("T31_acknowledged_and_applied_elsewhere", 7)
	if again := n.Report(0); !proto.Equal(again, report) {
		t.Errorf("repeated report: got %v, want %v", again, report)
	}
	f.catchUp(n, 1)
	// ⌈(51 − 10)/3⌉ = 14.
	check("T31_applied_here", 14)
}

func TestT31Snapshot(t *testing.T) {
	t.Parallel()
	f := newFleet(3, standard())
	n := f.nodes[0]
	for range 10 {
		f.ask(n, "c", 1)
	}
	f.commit(n.Report(0))
	f.catchUp(f.nodes[1], 1)
	f.ask(n, "c", 1)
	// A snapshot of b replaces a's replica: the entry is never applied at a.
	n.replica, n.applied = f.nodes[1].replica, 1
	n.Reconcile(n.replica)
	t.Run("T31_a_snapshot_counts_as_applied", func(t *testing.T) {
		if got := n.Report(0).GetSlices(); len(got) != 1 || got[0].GetRetries() != 11 {
			t.Fatalf("report after the snapshot: %v, want the eleventh, cumulatively", got)
		}
		f.commit(n.Report(0))
		f.catchUp(n, 2)
		if total, retried := n.replica.sum(0, "c"); total != 11 || retried != 11 {
			t.Errorf("counted %d of %d, want 11 of 11", retried, total)
		}
	})
}

func TestT32CutOff(t *testing.T) {
	t.Parallel()
	t.Run("T32_the_window_slides_by_the_own_clock", func(t *testing.T) {
		t.Parallel()
		rule := standard()
		rule.MinRequests = 5
		f := newFleet(1, rule)
		n := f.nodes[0]
		for range 10 {
			f.ask(n, "c", 1)
		}
		if d := f.ask(n, "c", 0); d.Verdict != retries.Budget {
			t.Fatalf("over budget: got %v, want budget", d)
		}
		f.now += int64(rule.Window) - 1
		if d := f.ask(n, "c", 0); d.Verdict != retries.Budget {
			t.Fatalf("just before the window has passed: got %v, want budget", d)
		}
		f.now++
		if d := f.ask(n, "c", 1); d.Verdict != retries.Admit {
			t.Fatalf("after the window, without having applied anything: got %v, want admit", d)
		}
	})
	t.Run("T32_what_is_too_old_is_not_reported", func(t *testing.T) {
		t.Parallel()
		f := newFleet(1, standard())
		n := f.nodes[0]
		for range 10 {
			f.ask(n, "c", 1)
		}
		f.now += int64(f.rule.Window)
		if r := n.Report(time.Duration(f.now)); r != nil {
			t.Errorf("report after the window: %v, want none", r)
		}
		if clients, slots := n.Kept(); clients != 0 || slots != 0 {
			t.Errorf("kept %d clients and %d slots, want none", clients, slots)
		}
	})
}
