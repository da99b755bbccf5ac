package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorlease/quorlease/bench"
	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/alert"
)

// inbox is what nodes (by webhook) and the client told, and when. The disk of the
// machine that runs this is left out.
type inbox struct {
	server *httptest.Server
	mu     sync.Mutex
	at     map[string]time.Time // guarded by mu
	twice  bool                 // guarded by mu
}

func newInbox() *inbox {
	b := &inbox{at: map[string]time.Time{}}
	b.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var d alert.Document
		if err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&d); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if d.Kind != "DiskLow" {
			b.note(d.Kind + " " + d.Status)
		}
	}))
	return b
}

func (b *inbox) url() string { return b.server.URL }
func (b *inbox) close()      { b.server.Close() }

// cause is named where an alert is one too many: of a lost quorum it is known.
func cause(a alert.Alert) string {
	if cause := a.Labels["cause"]; cause != "no quorum" && cause != "unreachable" {
		return " " + cause
	}
	return ""
}

func (b *inbox) note(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, again := b.at[name]
	b.twice = b.twice || again
	b.at[name] = time.Now()
}

func (b *inbox) len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.at)
}

// names are what came since take, and whether anything of it came twice.
func (b *inbox) names() (names []string, twice bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Keys(b.at)), b.twice
}

// take empties it.
func (b *inbox) take() map[string]time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := b.at
	b.at, b.twice = map[string]time.Time{}, false
	return at
}

// calls is a client that is called fifty times a second, whatever happens.
type calls struct {
	client           *client.Client
	made, local, bad atomic.Int64
	slowest          atomic.Int64
	stop             context.CancelFunc
	joined           sync.WaitGroup
}

// callDeadline is within what time each call is decided.
const callDeadline = 150 * time.Millisecond

func startCalls(nodes *bench.Nodes, b *inbox) (*calls, error) {
	c := &calls{}
	config := client.Config{Client: "soak", Deadline: callDeadline, Alerts: []alert.Sink{alert.Func(func(a alert.Alert) {
		status := " firing"
		if a.Resolved {
			status = " resolved"
		}
		b.note(a.Kind + status + cause(a))
	})}}
	for i := range nodes.Len() {
		config.Endpoints = append(config.Endpoints, nodes.GRPC(i))
	}
	var err error
	if c.client, err = client.New(config); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.stop = cancel
	c.joined.Go(func() {
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				c.joined.Go(c.call)
			case <-ctx.Done():
				return
			}
		}
	})
	return c, nil
}

func (c *calls) call() {
	began := time.Now()
	d, err := c.client.Acquire(context.Background(), client.Request{
		Charges: []client.Charge{{Limit: "soak", Dimension: "requests", Amount: 1}},
	})
	for took := int64(time.Since(began)); ; {
		slowest := c.slowest.Load()
		if took <= slowest || c.slowest.CompareAndSwap(slowest, took) {
			break
		}
	}
	c.made.Add(1)
	switch {
	case err != nil || !d.Granted:
		c.bad.Add(1)
	case d.Source == client.Local:
		c.local.Add(1)
	}
}

func (c *calls) close() {
	c.stop()
	c.joined.Wait()
	_ = c.client.Close()
}

// verdict says what became of the calls.
func (c *calls) verdict(out io.Writer) error {
	fmt.Fprintf(out, "%d calls of %s at most: %d decided locally, %d failed or denied, the slowest took %s\n",
		c.made.Load(), callDeadline, c.local.Load(), c.bad.Load(), time.Duration(c.slowest.Load()).Round(time.Millisecond))
	if n := c.bad.Load(); n != 0 {
		return fmt.Errorf("%d calls failed or were denied", n)
	}
	return nil
}
