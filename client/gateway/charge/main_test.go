package charge_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/alert"
	"github.com/quorlease/quorlease/client/clienttest"
	"github.com/quorlease/quorlease/client/gateway/charge"
	"github.com/quorlease/quorlease/client/report"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const limits = `
limits:
- {name: deployment, match: {deployment: "*"}, per: [deployment],
   rate: {requests: 10_000/s, tokens: 1_000_000/s}, burst: {requests: 10_000, tokens: 1_000_000}}
- {name: tenant, match: {tenant: "*"}, per: [tenant], rate: {requests: 1000/s, tokens: 100_000/s},
   burst: {requests: 1000, tokens: 100_000}}
- {name: narrow, match: {narrow: "*"}, per: [narrow], rate: {requests: 10/s}, burst: {requests: 10}}
- {name: inflight, match: {slots: "*"}, per: [slots], concurrency: 2, lease: 4s}
retry_budgets: [{name: everybody, match: {client: "*"}}]
`

// world is a cluster and a client of it that a desk asks.
type world struct {
	*clienttest.Cluster
	*client.Client
	t     *testing.T
	desks []*charge.Desk

	// acquire and settle, if not nil, may answer instead of the client.
	acquire         func(client.Request) (*client.Decision, error)
	settle          func(context.Context) error
	tries           func(name string)
	asked, renewals atomic.Int64
}

// Acquire, Settle and Renew are the client's, and counted.
func (w *world) Acquire(ctx context.Context, r client.Request) (*client.Decision, error) {
	w.asked.Add(1)
	if w.acquire != nil {
		if d, err := w.acquire(r); d != nil || err != nil {
			return d, err
		}
	}
	return w.Client.Acquire(ctx, r)
}

func (w *world) Settle(ctx context.Context, l client.Lease, u ...client.Usage) (*client.Settlement, error) {
	if w.settle != nil {
		if err := w.settle(ctx); err != nil {
			return nil, err
		}
	}
	return w.Client.Settle(ctx, l, u...)
}

func (w *world) Renew(ctx context.Context, l client.Lease, r client.Renewal) (*client.Settlement, error) {
	w.renewals.Add(1)
	return w.Client.Renew(ctx, l, r)
}

// TriesOf is the client's, after tries.
func (w *world) TriesOf(name string) *report.Book {
	if w.tries != nil {
		w.tries(name)
	}
	return w.Client.TriesOf(name)
}

// bubble runs f in virtual time.
func bubble(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cluster, err := clienttest.New(3)
		if err != nil {
			t.Fatal(err)
		}
		defer cluster.Close()
		if err := cluster.LimitsFile(limits); err != nil {
			t.Fatal(err)
		}
		c, err := client.New(client.Config{
			Endpoints: cluster.Endpoints(), Client: "gateway", Dial: cluster.Dial,
			Alerts: []alert.Sink{alert.Func(func(alert.Alert) {})},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		w := &world{Cluster: cluster, Client: c, t: t}
		defer func() {
			for _, d := range w.desks {
				_ = d.Close()
			}
		}()
		f(t, w)
	})
}

func (w *world) limits(text string) {
	w.t.Helper()
	if err := w.LimitsFile(text); err != nil {
		w.t.Fatal(err)
	}
}

// desk is one that the test does not have to close.
func (w *world) desk(change func(*charge.Config)) *charge.Desk {
	w.t.Helper()
	config := charge.Config{Authority: w}
	if change != nil {
		change(&config)
	}
	d, err := charge.New(config)
	if err != nil {
		w.t.Fatal(err)
	}
	w.desks = append(w.desks, d)
	return d
}

// call is a call of one tenant for so many tokens.
func call(tenant string, tokens int64) charge.Work {
	return charge.Work{
		Client: tenant, Attributes: map[string]string{"tenant": tenant, "deployment": "d"},
		Amounts: map[string]int64{"requests": 1, "tokens": tokens},
	}
}

// take takes what has to be granted.
func (w *world) take(d *charge.Desk, work charge.Work) *charge.Charge {
	w.t.Helper()
	c, decision, err := d.Take(w.t.Context(), work)
	if err != nil || c == nil || !decision.Granted {
		w.t.Fatalf("take %+v: %+v, %v", work, decision, err)
	}
	return c
}

// denied takes what has to be denied.
func (w *world) denied(d *charge.Desk, work charge.Work) *client.Decision {
	w.t.Helper()
	c, decision, err := d.Take(w.t.Context(), work)
	if err != nil || c != nil || decision == nil || decision.Granted || len(decision.Denials) == 0 {
		w.t.Fatalf("take %+v: %+v, %v, %v; want a denial", work, c, decision, err)
	}
	return decision
}

// warm makes calls until they are paid from what is held.
func (w *world) warm(d *charge.Desk, work charge.Work) {
	w.t.Helper()
	for range 100 {
		before := d.Stats().Permits
		w.take(d, work).Settle(nil)
		pass(20 * time.Millisecond)
		if d.Stats().Permits > before {
			return
		}
	}
	w.t.Fatalf("a hundred calls, and nothing is held: %+v", d.Stats())
}

// pass lets virtual time pass.
func pass(d time.Duration) { <-time.After(d) }

// level is what a bucket has of its dimensions, and how many leases are open.
func (w *world) level(limit, key string) (levels map[string]int64, leases int) {
	w.t.Helper()
	levels = map[string]int64{}
	w.View(func(m *fsm.Machine, now bucket.Instant) {
		found, err := m.Inspect(now, limit, key)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, b := range found.Buckets {
			levels[b.Dimension] = b.Level - b.Debt
		}
		leases = found.OpenLeases
	})
	return levels, leases
}

// counted is what the authority was told of what a client did by permits.
func (w *world) counted(name string) (stat fsm.ClientStat) {
	w.View(func(m *fsm.Machine, now bucket.Instant) { stat = m.Client(now, name) })
	return stat
}

// alone is a client of one node in real time, whose limits have room for a benchmark.
func alone() (stop func(), c *client.Client, err error) {
	cluster, err := clienttest.New(1)
	if err != nil {
		return nil, nil, err
	}
	if err := cluster.LimitsFile(`
limits:
- {name: deployment, match: {deployment: "*"}, per: [deployment],
   rate: {requests: 1_000_000_000/s, tokens: 1_000_000_000/s}}
- {name: tenant, match: {tenant: "*"}, per: [tenant], rate: {requests: 1_000_000_000/s, tokens: 1_000_000_000/s}}
`); err != nil {
		return nil, nil, err
	}
	c, err = client.New(client.Config{
		Endpoints: cluster.Endpoints(), Client: "gateway", Dial: cluster.Dial,
		Alerts: []alert.Sink{alert.Func(func(alert.Alert) {})},
	})
	if err != nil {
		return nil, nil, err
	}
	return func() { c.Close(); cluster.Close() }, c, nil
}
