package overview_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server/overview"
	"github.com/quorlease/quorlease/cluster"
	"github.com/quorlease/quorlease/cluster/clustertest"
	"github.com/quorlease/quorlease/cluster/events"
	"github.com/quorlease/quorlease/cluster/retries"
	"github.com/quorlease/quorlease/fsm/tally"
)

// nodes are three real nodes in virtual time, with a retry budget for everybody, a
// limit that nothing meets and two of a request in two seconds.
type nodes struct {
	*testing.T
	*clustertest.Cluster
}

func inCluster(t *testing.T, test func(nodes)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := nodes{t, clustertest.New(t, 3, clustertest.Options{InMemory: true})}
		slot := clustertest.Rate("slot", 1, 2*time.Second, 1)
		slot.Queue = &logv1.Queue{Max: 100, MaxWait: int64(time.Minute)}
		if _, err := c.Node("a").ApplyLimits(t.Context(), &logv1.ApplyLimits{
			Limits: []*logv1.Limit{
				slot, clustertest.Rate("turn", 1, 2*time.Second, 1),
				clustertest.Rate("wide", 1_000_000, time.Hour, 1_000_000),
			},
			RetryBudgets: []*logv1.RetryBudget{{
				Name: "default", Client: "*", MaxRetries: 3, MaxFraction: 2000, MinRequests: 50,
				Window: int64(time.Minute), RetryAfter: int64(time.Minute), WarnFraction: 1000, WarnFor: int64(10 * time.Second),
			}},
		}); err != nil {
			t.Fatal(err)
		}
		c.RequireSameState()
		test(c)
	})
}

// ask asks one node for one request and returns why not, nil for a grant.
func (c nodes) ask(node, client, limit string, attempt uint32) *logv1.Denial {
	c.Helper()
	op := clustertest.Acquire(limit, 1)
	op.Client = client
	r, err := c.Node(node).Acquire(c.Context(), op, attempt)
	if err != nil {
		c.Fatal(err)
	}
	if r.GetGranted() {
		return nil
	}
	return r.GetDenials()[0]
}

// picture is what a node shows now.
func (c nodes) picture(hub *overview.Hub) *quorleasev1.OverviewWatchResponse {
	c.Helper()
	// Another one than the last.
	pass(300 * time.Millisecond)
	shown, err := hub.Now(c.Context(), &quorleasev1.OverviewWatchRequest{})
	if err != nil {
		c.Fatal(err)
	}
	return shown.Response
}

func row(p *quorleasev1.OverviewWatchResponse, client string) *quorleasev1.ClientStatus {
	i := slices.IndexFunc(p.GetClients(), func(c *quorleasev1.ClientStatus) bool { return c.GetClient() == client })
	if i < 0 {
		return nil
	}
	return p.GetClients()[i]
}

// TestRedAtOnce: whoever crosses its budget is over it in a picture of every node, within
// a second of the retry that crosses it; and the alerts that are counted are those that
// the nodes' events have begun.
func TestRedAtOnce(t *testing.T) {
	t.Parallel()
	t.Run("S1-39_S1-40", func(t *testing.T) {
		t.Parallel()
		inCluster(t, func(c nodes) {
			t := c.T
			var mu sync.Mutex
			red := map[string]time.Time{}
			for _, name := range c.Names() {
				hub, drain := hubOf(t, c.Node(name))
				site{T: t, hub: hub, drain: drain}.watch(func(p *quorleasev1.OverviewWatchResponse) error {
					mu.Lock()
					defer mu.Unlock()
					if r := row(p, "batch-scorer"); r.GetOverBudget() && red[name].IsZero() {
						if p.GetClients()[0] != r || p.GetRetryAlerts() != 1 || len(p.GetAlerts()) != 1 {
							t.Errorf("%s: %v is not on top, or %d alerts", name, r, p.GetRetryAlerts())
						}
						red[name] = time.Now()
					}
					return nil
				})
			}
			var crossed time.Time
			for i := range uint32(60) {
				// Ten of fifty-one are within; from the eleventh on it is above.
				attempt := uint32(0)
				if i >= 41 {
					attempt = 1
				}
				if d := c.ask("b", "batch-scorer", "wide", attempt); d != nil {
					if d.GetReason() != logv1.Reason_REASON_RETRY_BUDGET {
						t.Fatal(d)
					}
					break
				}
				crossed = time.Now()
				c.ask("c", "calm", "wide", 0)
				pass(100 * time.Millisecond)
			}
			pass(3 * time.Second)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			for _, name := range c.Names() {
				if after := red[name].Sub(crossed); red[name].IsZero() || after > time.Second {
					t.Errorf("%s: red %v after the retry that crossed it, want at most a second", name, after)
				}
			}
		})
	})
	t.Run("S1-40", func(t *testing.T) {
		t.Parallel()
		inCluster(t, func(c nodes) {
			t := c.T
			hub, _ := hubOf(t, c.Node("c"))
			for i := range 5 {
				for range 60 {
					c.ask("a", fmt.Sprintf("storm-%d", i), "wide", 1)
					pass(50 * time.Millisecond)
				}
			}
			pass(2 * time.Second)
			if got, want := c.picture(hub).GetRetryAlerts(), c.begun("c"); got != want || want < 5 {
				t.Errorf("%d alerts, the events say %d, want five or more", got, want)
			}
			// Those that are warned of after ten seconds come to it; in the end nothing is left.
			for _, after := range []time.Duration{10 * time.Second, 80 * time.Second} {
				pass(after)
				if got, want := c.picture(hub).GetRetryAlerts(), c.begun("c"); got != want {
					t.Errorf("%d alerts after %v, the events say %d", got, after, want)
				}
			}
			if n := c.begun("c"); n != 0 {
				t.Errorf("%d are left", n)
			}
		})
	})
}

// begun is how many incidents of clients a node's events have begun and not ended.
func (c nodes) begun(node string) int64 {
	from := uint64(0)
	s, err := c.Node(node).Events().Subscribe(&from)
	if err != nil {
		c.Fatal(err)
	}
	open := map[string]bool{}
	for {
		e, ok, err := s.TryNext()
		if err != nil || !ok {
			return int64(len(open))
		}
		if e.Kind == events.ClientOverBudget || e.Kind == events.ClientRetryWarning {
			if id := string(e.Kind) + e.Client; e.Severity == events.Info {
				delete(open, id)
			} else {
				open[id] = true
			}
		}
	}
}

// TestOffenders: the table is what the test has counted, whether a client waits as long
// as it is told is seen from when it comes back, and what is left of a budget shrinks
// with every retry.
func TestOffenders(t *testing.T) {
	t.Parallel()
	t.Run("S1-13_S1-37", func(t *testing.T) {
		t.Parallel()
		inCluster(t, func(c nodes) {
			t := c.T
			hub, _ := hubOf(t, c.Node("c"))
			hasty, patient := newLedger("hasty", "slot"), newLedger("patient", "turn")
			for range 45 {
				for range 3 {
					c.turn(hasty)
				}
				c.turn(patient)
				pass(time.Until(patient.until) + time.Millisecond)
			}
			c.Node("b").CountTried("hasty", retries.Tried{
				Count: tally.Count{Total: 100, Retries: 30, Throttled: 40}, Fault: tally.Fault{Text: "429", Times: 40},
			})
			hasty.Requests += 100
			hasty.Retries, hasty.Throttled, hasty.Error, hasty.OverBudget = 30, 40, "429", true
			pass(2 * time.Second)
			p := c.picture(hub)
			if p.GetClientsTotal() != 2 || len(p.GetClients()) != 2 {
				t.Fatalf("%d of %d clients, want two", len(p.GetClients()), p.GetClientsTotal())
			}
			for _, ledger := range []*ledger{hasty, patient} {
				want := ledger.ClientStatus
				want.RetryBudget, want.Mode = "default", quorleasev1.Mode_ENFORCE
				want.FractionPpm = want.GetRetries() * 1_000_000 / want.GetRequests()
				want.HonoursWaits = proto.Bool(ledger == patient)
				got := row(p, want.GetClient())
				ignore := protocmp.IgnoreFields(want, "retries_left", "retries_allowed", "frees_in", "over_for")
				if diff := cmp.Diff(want, got, protocmp.Transform(), ignore); diff != "" {
					t.Errorf("-ledger +table:\n%s", diff)
				}
			}
		})
	})
	t.Run("S1-38", func(t *testing.T) {
		t.Parallel()
		inCluster(t, func(c nodes) {
			t := c.T
			hub, _ := hubOf(t, c.Node("a"))
			for range 100 {
				c.ask("a", "worker", "wide", 0)
			}
			left := int64(1 << 60)
			for i := range int64(25) {
				if d := c.ask("a", "worker", "wide", 1); d != nil {
					t.Fatalf("retry %d: %v", i+1, d)
				}
				pass(1200 * time.Millisecond)
				r := row(c.picture(hub), "worker")
				if r.GetRetriesLeft() >= left || r.GetRetriesAllowed() != r.GetRetriesLeft()+i+1 || r.GetRetries() != i+1 {
					t.Fatalf("after retry %d: %v, want less than %d left", i+1, r, left)
				}
				left = r.GetRetriesLeft()
			}
			// Nothing is left after the one that crosses it.
			c.ask("a", "worker", "wide", 1)
			pass(1200 * time.Millisecond)
			if r := row(c.picture(hub), "worker"); r.GetRetriesLeft() != 0 || !r.GetOverBudget() ||
				r.GetOverFor().AsDuration() <= 0 || r.GetOverFor().AsDuration() > 2*time.Second {
				t.Errorf("%v, want that nothing is left since a second", r)
			}
		})
	})
}

// TestWhatWaits: whatever node is asked, and whoever leads, the key where most wait is
// shown with what waits there.
func TestWhatWaits(t *testing.T) {
	t.Parallel()
	inCluster(t, func(c nodes) {
		t := c.T
		c.ask("a", "first", "slot", 0)
		ctx, cancel := context.WithCancel(t.Context())
		var waiting sync.WaitGroup
		for i := range 5 {
			op := clustertest.Acquire("slot", 1)
			op.Client = fmt.Sprintf("worker-%d", i%2)
			waiting.Go(func() {
				_, _ = c.Node("b").Await(ctx, &cluster.Pending{
					Operation: &logv1.Operation{Kind: &logv1.Operation_Acquire{Acquire: op}}, MaxWait: time.Minute,
				})
			})
		}
		synctest.Wait()
		pass(500 * time.Millisecond)
		for _, name := range c.Names() {
			hub, _ := hubOf(t, c.Node(name))
			p := c.picture(hub)
			i := slices.IndexFunc(p.GetLimits(), func(l *quorleasev1.LimitOverview) bool { return l.GetName() == "slot" })
			if slot := p.GetLimits()[i]; slot.GetWaiting() != 5 || slot.GetOldest().AsDuration() < 400*time.Millisecond ||
				slot.GetEta().AsDuration() <= 0 || slot.GetBinding() != "requests" {
				t.Errorf("%s: %v, want five that wait", name, slot)
			}
		}
		cancel()
		waiting.Wait()
	})
}

// ledger is what a test counts of a client that asks for a limit. It was last told to
// wait until then.
type ledger struct {
	*quorleasev1.ClientStatus
	limit string
	until time.Time
}

func newLedger(client, limit string) *ledger {
	return &ledger{ClientStatus: &quorleasev1.ClientStatus{Client: client}, limit: limit}
}

// turn asks once and counts what comes of it.
func (c nodes) turn(l *ledger) {
	c.Helper()
	if time.Now().Before(l.until) {
		l.Early++
	}
	l.until = time.Time{}
	d := c.ask("a", l.GetClient(), l.limit, 0)
	if d == nil {
		l.Requests++
		return
	}
	l.Denied++
	l.until = time.Now().Add(time.Duration(d.GetRetryAfter()))
}

var _ overview.Node = (*cluster.Node)(nil)
