package client_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/alert"
	"github.com/quorlease/quorlease/client/clienttest"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const limits = `
limits:
- {name: open, per: [key], rate: {requests: 1000/s}, burst: {requests: 1000}}
- {name: share, rate: {requests: 100/s}, burst: {requests: 100}, on_quorum_loss: share, fallback: {share: 25%}}
- {name: closed, rate: {requests: 1000/s}, burst: {requests: 1000}, on_quorum_loss: closed}
`

// world is a cluster of three nodes and what its clients alert.
type world struct {
	*clienttest.Cluster
	t *testing.T

	mu     sync.Mutex
	alerts []alert.Alert
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
		f(t, &world{Cluster: cluster, t: t})
	})
}

func (w *world) client(change func(*client.Config)) *client.Client {
	w.t.Helper()
	config := client.Config{
		Endpoints: w.Endpoints(), Client: "billing", Dial: w.Dial,
		Alerts: []alert.Sink{alert.Func(func(a alert.Alert) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.alerts = append(w.alerts, a)
		})},
	}
	if change != nil {
		change(&config)
	}
	c, err := client.New(config)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// raised are the alerts so far.
func (w *world) raised() []alert.Alert {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]alert.Alert(nil), w.alerts...)
}

// wantAlerts checks how many began and how many are over.
func (w *world) wantAlerts(started, resolved int) {
	w.t.Helper()
	got := [2]int{}
	all := w.raised()
	for _, a := range all {
		if a.Resolved {
			got[1]++
		} else {
			got[0]++
		}
	}
	if got != [2]int{started, resolved} {
		w.t.Errorf("%d alerts, %d resolved; want %d and %d: %+v", got[0], got[1], started, resolved, all)
	}
}

// ask is one acquire of one request with a deadline, checked to be kept.
func (w *world) ask(c *client.Client, limit string, deadline time.Duration) *client.Decision {
	w.t.Helper()
	return w.acquire(c, deadline, client.Request{Charges: []client.Charge{charge(limit, 1)}})
}

func (w *world) acquire(c *client.Client, deadline time.Duration, r client.Request) *client.Decision {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), deadline)
	defer cancel()
	began := time.Now()
	d, err := c.Acquire(ctx, r)
	if err != nil {
		w.t.Fatalf("acquire %+v: %v", r, err)
	}
	if took := time.Since(began); took > deadline {
		w.t.Errorf("G8: answered after %s, the deadline was %s", took, deadline)
	}
	return d
}

func charge(limit string, n int64) client.Charge {
	c := client.Charge{Limit: limit, Dimension: "requests", Amount: n}
	if limit == "open" {
		c.Key = "tenant-1"
	}
	return c
}

// pass lets virtual time pass.
func pass(d time.Duration) { <-time.After(d) }

// reported is what reports have booked of a limit, over all sessions, and of how
// many of them.
func (w *world) reported(limit, key string) (tokens int64, sessions int) {
	w.t.Helper()
	w.View(func(m *fsm.Machine, now bucket.Instant) {
		found, err := m.Inspect(now, limit, key)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, r := range found.Reports {
			tokens += r.Tokens
			sessions++
		}
	})
	return tokens, sessions
}
