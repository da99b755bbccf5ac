package budget_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/budget"
	"github.com/quorlease/quorlease/cluster/events"
	"github.com/quorlease/quorlease/cluster/retries"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// commits is how long an entry takes.
const commits = 2 * time.Millisecond

// fleet is the offices of three nodes that have applied the same, in a bubble's
// time.
type fleet struct {
	t       *testing.T
	began   time.Time
	offices []*budget.Office
	desks   []*retries.Desk
	next    int

	mu      sync.Mutex
	machine *fsm.Machine
	// said are the events of each node.
	said    [3][]events.Event
	reports int
}

func inFleet(t *testing.T, run func(*fleet)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{t: t, began: time.Now(), machine: fsm.New()}
		f.apply(&logv1.Operation{Kind: &logv1.Operation_ApplyLimits{
			ApplyLimits: &logv1.ApplyLimits{RetryBudgets: []*logv1.RetryBudget{rule()}},
		}})
		stop := make(chan struct{})
		var loops sync.WaitGroup
		for i := range f.said {
			f.desks = append(f.desks, retries.NewDesk(string(rune('a'+i))+".00000000"))
			f.offices = append(f.offices, f.office(i, &loops))
		}
		for i := range f.offices {
			// The nodes' seconds begin at different moments.
			timer := time.NewTimer(333 * time.Millisecond)
			<-timer.C
			loops.Go(func() { f.offices[i].KeepReported(stop) })
			loops.Go(func() { f.offices[i].KeepWarned(stop) })
		}
		run(f)
		close(stop)
		loops.Wait()
	})
}

// office is one node's. Its reports commit a little later.
func (f *fleet) office(i int, commit *sync.WaitGroup) *budget.Office {
	return budget.New(budget.Config{
		Desk: f.desks[i], View: f.view, Elapsed: f.elapsed, Serving: func() int { return len(f.said) },
		Propose: func(r *logv1.ReportRetries) {
			commit.Go(func() {
				timer := time.NewTimer(commits)
				<-timer.C
				f.apply(&logv1.Operation{Kind: &logv1.Operation_ReportRetries{ReportRetries: r}})
			})
		},
		WouldRefuse: func(*logv1.RetryBudget, logv1.Reason) {},
		Publish: func(e events.Event) {
			f.mu.Lock()
			defer f.mu.Unlock()
			e.Time = time.Now()
			f.said[i] = append(f.said[i], e)
		},
	})
}

func (f *fleet) elapsed() time.Duration { return time.Since(f.began) }

func (f *fleet) view(read func(*fsm.Machine, bucket.Instant)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	read(f.machine, bucket.Instant(f.elapsed()))
}

func (f *fleet) apply(op *logv1.Operation) {
	f.mu.Lock()
	defer f.mu.Unlock()
	results, _ := f.machine.Apply(f.machine.Index()+1, &logv1.Entry{
		Stamp: int64(f.elapsed()), Operations: []*logv1.Operation{op},
	})
	if refusal := results[0].GetRefusal(); refusal != nil {
		f.t.Error(refusal)
	}
	if r := op.GetReportRetries(); r != nil {
		f.reports++
		for _, d := range f.desks {
			d.Applied(f.machine, f.elapsed(), r)
		}
	}
}

// reported is how many reports were applied.
func (f *fleet) reported() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reports
}

// ask asks the nodes in turn, so many times.
func (f *fleet) ask(times int, attempt uint32) {
	for range times {
		acquire := &logv1.Acquire{Client: "batch-scorer"}
		office := f.offices[f.next%len(f.offices)]
		f.next++
		var ruling retries.Ruling
		result := office.Refused(acquire, attempt, &ruling).GetAcquire()
		if result == nil {
			result = &logv1.AcquireResult{Granted: true}
		}
		office.Finished(acquire, &ruling, result, false)
		synctest.Wait()
	}
}

// heard are the events of each node of that kind and severity, as times since a
// moment.
func (f *fleet) heard(since time.Time, kind events.Kind, severity events.Severity) (at [3][]time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.said {
		for _, e := range f.said[i] {
			if e.Kind == kind && e.Severity == severity {
				at[i] = append(at[i], e.Time.Sub(since))
			}
			if e.Client != "batch-scorer" || !strings.HasPrefix(e.Text, "batch-scorer ") {
				f.t.Errorf("%+v does not name the client", e)
			}
		}
	}
	return at
}

// bouts are the numbers that the nodes give the beginnings of that kind, each once.
func (f *fleet) bouts(kind events.Kind) (numbers []int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, said := range f.said {
		for _, e := range said {
			if e.Kind == kind && e.Severity > events.Info && !slices.Contains(numbers, e.Bout) {
				numbers = append(numbers, e.Bout)
			}
		}
	}
	return numbers
}

// above brings the client a hair above a tenth, wherever in the nodes' seconds the
// moment lies, and back after so long. It returns when each node warned.
func (f *fleet) above(phase, length time.Duration) [3][]time.Duration {
	// A second each of ninety first attempts, as the client always has.
	for range 10 {
		f.ask(90, 0)
		pass(time.Second)
	}
	pass(phase)
	since := time.Now()
	f.ask(101, 1)
	pass(length)
	f.ask(20, 0)
	pass(15 * time.Second)
	return f.heard(since, events.ClientRetryWarning, events.Warning)
}

// TestTheWarningIsExact: nobody is told of a client that was above a tenth for 119
// seconds, and every node says it of one that was for 120, when they are over. It does
// not matter when in a node's second the client crosses the line.
func TestTheWarningIsExact(t *testing.T) {
	t.Parallel()
	for _, phase := range []time.Duration{0, 100, 340, 667, 990} {
		for _, row := range []struct {
			name   string
			length time.Duration
			told   bool
		}{
			{"S1-42", 90 * time.Second, false},
			{"S1-41_almost", 119 * time.Second, false},
			{"S1-41", 120 * time.Second, true},
			{"S1-41_longer", 125 * time.Second, true},
		} {
			t.Run(row.name, func(t *testing.T) {
				inFleet(t, func(f *fleet) {
					warned := f.above(phase*time.Millisecond, row.length)
					for node, at := range warned {
						switch {
						case !row.told && len(at) != 0:
							t.Errorf("node %d warned after %v, want not at all", node, at)
						case row.told && (len(at) != 1 || at[0] < 120*time.Second-commits || at[0] > 120*time.Second+2*commits):
							t.Errorf("node %d warned after %v, want once, after two minutes and a commit", node, at)
						}
					}
					if numbers := f.bouts(events.ClientRetryWarning); row.told && len(numbers) != 1 {
						t.Errorf("the nodes number one incident %v, want alike", numbers)
					}
				})
			})
		}
	}
}

// TestOverIsSaidAtOnce: above a fifth is said when it has committed, by every node.
func TestOverIsSaidAtOnce(t *testing.T) {
	t.Parallel()
	t.Run("S1-39", func(t *testing.T) {
		inFleet(t, func(f *fleet) {
			f.ask(400, 0)
			pass(2 * time.Second)
			admitted, crossed := 0, time.Time{}
			for range 100 {
				f.ask(10, 1)
				admitted += 10
				if admitted == 110 {
					crossed = time.Now()
				}
				pass(10 * time.Millisecond)
			}
			for node, at := range f.heard(crossed, events.ClientOverBudget, events.Warning) {
				if len(at) != 1 || at[0] > time.Second {
					t.Errorf("node %d said it after %v, want once, within a second", node, at)
				}
			}
		})
	})
}

// TestHoveringDoesNotFillTheLog: a client that crosses its line with each request makes
// a node report a bounded number of times.
func TestHoveringDoesNotFillTheLog(t *testing.T) {
	inFleet(t, func(f *fleet) {
		f.ask(90, 0)
		f.ask(10, 1)
		pass(2 * time.Second)
		before := f.reported()
		for range 1000 {
			f.ask(1, 1)
			f.ask(9, 0)
			pass(10 * time.Millisecond)
		}
		// Three nodes, ten seconds: 20 a second each and their ticks, and 20 to begin with.
		if most, n := 3*(20+10*20+11), f.reported()-before; n > most {
			t.Errorf("%d reports in ten seconds, want at most %d", n, most)
		}
	})
}
