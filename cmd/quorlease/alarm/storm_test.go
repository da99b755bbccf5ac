package alarm

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/budget"
	"github.com/quorlease/quorlease/cluster/events"
	"github.com/quorlease/quorlease/cluster/retries"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/tally"
)

// watchers are three nodes that look at one log, each for itself.
type watchers struct {
	t       *testing.T
	began   time.Time
	desks   []*retries.Desk
	offices []*budget.Office
	rings   []*events.Ring

	mu      sync.Mutex
	machine *fsm.Machine
}

// watch lets three nodes watch while run makes what they see, in a bubble's time. It
// returns their events, which are over.
func watch(t *testing.T, run func(*watchers)) (rings []*events.Ring) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &watchers{t: t, began: time.Now(), machine: fsm.New()}
		stop := make(chan struct{})
		var loops sync.WaitGroup
		for i := range 3 {
			ring := events.New(0, nil)
			w.rings = append(w.rings, ring)
			w.desks = append(w.desks, retries.NewDesk(fmt.Sprintf("n%d.00000000", i+1)))
			office := budget.New(budget.Config{
				Desk: w.desks[i], View: w.view, Elapsed: w.elapsed, Serving: func() int { return 3 },
				Propose: func(r *logv1.ReportRetries) {
					w.apply(&logv1.Operation{Kind: &logv1.Operation_ReportRetries{ReportRetries: r}})
				},
				WouldRefuse: func(*logv1.RetryBudget, logv1.Reason) {}, Publish: ring.Publish,
			})
			w.offices = append(w.offices, office)
			loops.Go(func() { office.KeepReported(stop) })
			loops.Go(func() { office.KeepWarned(stop) })
		}
		w.apply(&logv1.Operation{Kind: &logv1.Operation_ApplyLimits{ApplyLimits: &logv1.ApplyLimits{
			RetryBudgets: []*logv1.RetryBudget{{
				Name: "default", Client: "*", MaxRetries: 3, MaxFraction: 2000, MinRequests: 50,
				Window: int64(5 * time.Minute), RetryAfter: int64(time.Minute),
				WarnFraction: 1000, WarnFor: int64(2 * time.Minute),
			}},
		}}})
		run(w)
		close(stop)
		loops.Wait()
		rings = w.rings
	})
	for _, ring := range rings {
		ring.Close()
	}
	return rings
}

func (w *watchers) elapsed() time.Duration { return time.Since(w.began) }

func (w *watchers) view(read func(*fsm.Machine, bucket.Instant)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	read(w.machine, bucket.Instant(w.elapsed()))
}

func (w *watchers) apply(op *logv1.Operation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	results, _ := w.machine.Apply(w.machine.Index()+1, &logv1.Entry{
		Stamp: int64(w.elapsed()), Operations: []*logv1.Operation{op},
	})
	if refusal := results[0].GetRefusal(); refusal != nil {
		w.t.Error(refusal)
	}
	for _, d := range w.desks {
		if report := op.GetReportRetries(); report != nil {
			d.Applied(w.machine, w.elapsed(), report)
		}
	}
}

// tries are what a client did by its permits, told to the second node; after that time
// passes.
func (w *watchers) tries(total, retried int64, passes time.Duration) {
	w.offices[1].CountTried("batch-scorer", retries.Tried{
		Count: tally.Count{Total: total, Retries: retried, Throttled: retried},
		Fault: tally.Fault{Text: "429", Times: retried},
	})
	timer := time.NewTimer(passes)
	<-timer.C
	synctest.Wait()
}

// told is what a webhook gets of the events of three nodes, of which each leads once,
// sorted: leader, what and how much; and the ids of each kind.
func told(t *testing.T, rings []*events.Ring) (lines []string, ids map[string][]string) {
	t.Helper()
	r, ids := newReceiver(t), map[string][]string{}
	for leader := range rings {
		r.got = nil
		for i, ring := range rings {
			a, err := Open(Config{
				Node: fmt.Sprintf("n%d", i+1), Events: ring, Targets: Targets{Webhooks: URLs{r.URL}},
				Leads: func() (here, elsewhere bool) { return i == leader, i != leader },
			})
			if err != nil {
				t.Fatal(err)
			}
			a.Close()
		}
		for _, d := range r.got {
			what := []string{fmt.Sprintf("n%d:", leader+1), d.Kind, d.Status, d.Labels["client"], d.Values["fraction"]}
			lines = append(lines, strings.Join(what, " "))
			if !slices.Contains(ids[d.Kind], d.ID) {
				ids[d.Kind] = append(ids[d.Kind], d.ID)
			}
		}
	}
	slices.Sort(lines)
	return lines, ids
}

// TestFromTheCountsToTheWebhook: a client that is above a tenth for two minutes, then
// above a fifth, and then calm is told of once each and with one id, whichever node leads.
func TestFromTheCountsToTheWebhook(t *testing.T) {
	t.Parallel()
	t.Run("S1-41_S1-48", func(t *testing.T) {
		t.Parallel()
		lines, ids := told(t, watch(t, func(w *watchers) {
			w.tries(100, 15, 125*time.Second)
			w.tries(900, 813, 10*time.Minute)
		}))
		var want []string
		for _, node := range []string{"n1", "n2", "n3"} {
			for _, what := range []string{
				"ClientOverBudget firing batch-scorer 82.8%", "ClientOverBudget resolved batch-scorer 0%",
				"ClientRetryWarning firing batch-scorer 15%", "ClientRetryWarning resolved batch-scorer 0%",
			} {
				want = append(want, node+": "+what)
			}
		}
		if diff := cmp.Diff(want, lines); diff != "" {
			t.Errorf("posted (-want +got):\n%s", diff)
		}
		if len(ids["ClientOverBudget"]) != 1 || len(ids["ClientRetryWarning"]) != 1 {
			t.Errorf("ids %v, want one of each", ids)
		}
	})
	t.Run("S1-42", func(t *testing.T) {
		t.Parallel()
		lines, _ := told(t, watch(t, func(w *watchers) {
			w.tries(100, 15, 90*time.Second)
			w.tries(1000, 0, 10*time.Minute)
		}))
		if len(lines) != 0 {
			t.Errorf("posted %q of ninety seconds, want nothing", lines)
		}
	})
}
