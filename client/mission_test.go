package client_test

import (
	"testing"
	"time"

	"github.com/quorlease/quorlease/client"
)

// away asks until the client decides by itself, at most a second and a half.
func (w *world) away(c *client.Client) {
	w.t.Helper()
	for end := time.Now().Add(1500 * time.Millisecond); !c.FailOpen(); pass(time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatal("not away")
		}
		w.ask(c, "open", time.Second)
	}
}

// TestStoreDown kills every node and keeps the traffic up.
func TestStoreDown(t *testing.T) {
	t.Run("S1-35", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			c := w.client(nil)
			defer c.Close()
			for _, limit := range []string{"open", "share", "closed"} {
				w.ask(c, limit, time.Second)
			}
			defer w.fourth("share")()
			w.Down()
			w.away(c)
			const calls = 1000
			granted := map[string]int{}
			began := time.Now()
			for range calls {
				for _, limit := range []string{"open", "share", "closed"} {
					d := w.ask(c, limit, time.Second)
					if d.Source != client.Local {
						t.Fatalf("%s: %+v, want the client's own answer", limit, d)
					}
					if d.Granted {
						granted[limit]++
					}
				}
				pass(10 * time.Millisecond)
			}
			took := time.Since(began)
			// A quarter of 100/s, from an empty bucket.
			share := int(25 * took.Seconds())
			if granted["open"] != calls || granted["closed"] != 0 || granted["share"] < share-2 || granted["share"] > share+1 {
				t.Errorf("%v of %d each in %s; want all of open, %d of share, none of closed", granted, calls, took, share)
			}
			if took > 11*time.Second {
				t.Errorf("calls took %s, want the pauses between them", took)
			}
		})
	})
}

// TestAlertOfTheOpenCircuit measures from when a client decides by itself.
func TestAlertOfTheOpenCircuit(t *testing.T) {
	t.Run("S1-36", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			c := w.client(nil)
			defer c.Close()
			w.ask(c, "open", time.Second)
			w.Down()
			w.away(c)
			w.offer(c, "open", 10*time.Millisecond, time.Second)
			w.wantAlerts(1, 0)
			w.offer(c, "open", 10*time.Millisecond, time.Minute)
			w.wantAlerts(1, 0)
			if err := w.Up(); err != nil {
				t.Fatal(err)
			}
			for end := time.Now().Add(4 * time.Second); c.FailOpen() && time.Now().Before(end); {
				pass(time.Millisecond)
			}
			if c.FailOpen() {
				t.Error("still away four seconds after the nodes are back")
			}
			w.wantAlerts(1, 1)
		})
	})
}
