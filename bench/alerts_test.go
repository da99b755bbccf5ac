package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/quorlease/quorlease/client/alert"
)

// hook is a webhook that keeps the alerts that it got, and when.
type hook struct {
	*httptest.Server
	mu  sync.Mutex
	got []alert.Document // guarded by mu
	at  []time.Time      // guarded by mu
}

func newHook(t *testing.T) *hook {
	t.Helper()
	h := &hook{}
	h.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		var d alert.Document
		if err := json.NewDecoder(q.Body).Decode(&d); err != nil {
			t.Error(err)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.got, h.at = append(h.got, d), append(h.at, time.Now())
	}))
	t.Cleanup(h.Close)
	return h
}

// told are the alerts so far as "kind status name", without those about the disk
// of the machine that runs the test.
func (h *hook) told() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var lines []string
	for _, d := range h.got {
		if d.Kind != "DiskLow" {
			lines = append(lines, fmt.Sprint(d.Kind, " ", d.Status, " ", d.Name))
		}
	}
	return strings.Join(lines, ", ")
}

// await waits until the alerts are those wanted, and returns when the last came.
func (h *hook) await(t *testing.T, want string) time.Time {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for h.told() != want {
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			t.Fatalf("told %q, want %q", h.told(), want)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.at[len(h.at)-1]
}

// quiet wants nothing more to be told for d.
func (h *hook) quiet(t *testing.T, want string, d time.Duration) {
	t.Helper()
	if err := pause(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if got := h.told(); got != want {
		t.Errorf("told %q, want %q", got, want)
	}
}

// lossNoticed bounds the time from the kill to the alert: an answer of a peer
// counts for 750 ms, then the loss is detectable, and a second after that (G8).
// An election that took too long would be noticed after three seconds.
const lossNoticed = 1750 * time.Millisecond

func TestALostQuorumAlertsOnce(t *testing.T) {
	t.Run("G8_the_survivor_alerts_once_and_resolves_once_and_an_election_alerts_nobody", func(t *testing.T) {
		h := newHook(t)
		nodes := startCluster(t, nil, "--alert-webhook", h.URL)
		leader, err := nodes.Leader(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := nodes.Signal(leader, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		survivor := (leader + 1) % nodes.Len()
		waitForOtherLeader(t, nodes, survivor, leader)
		// An election that lasts longer than three seconds would be an incident.
		h.quiet(t, "", 4*time.Second)
		restart(t, nodes, leader)

		gone := slices.DeleteFunc([]int{0, 1, 2}, func(i int) bool { return i == survivor })
		for _, i := range gone {
			if err := nodes.Signal(i, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
		killed := time.Now()
		name := fmt.Sprint("n", survivor+1)
		lost := "QuorumLost firing " + name
		took := h.await(t, lost).Sub(killed)
		t.Logf("told %s after the kill", took)
		if took > lossNoticed {
			t.Errorf("told %s after the kill, want at most %s", took, lossNoticed)
		}
		h.quiet(t, lost, 2*time.Second)
		restart(t, nodes, gone...)
		both := lost + ", QuorumLost resolved " + name
		h.await(t, both)
		h.quiet(t, both, 2*time.Second)
		h.mu.Lock()
		defer h.mu.Unlock()
		first, last := h.got[0], h.got[len(h.got)-1]
		if first.ID != last.ID || first.Severity != "critical" || last.Ended == nil || !last.Ended.After(first.Started) ||
			first.Link != "http://"+nodes.HTTP(survivor) {
			t.Errorf("began as %+v, ended as %+v", first, last)
		}
	})
}

// restart starts nodes again and waits until all are healthy.
func restart(t *testing.T, nodes *Nodes, which ...int) {
	t.Helper()
	for _, i := range which {
		if err := nodes.Start(i); err != nil {
			t.Fatal(err)
		}
	}
	if err := nodes.Healthy(t.Context()); err != nil {
		t.Fatal(err)
	}
}
