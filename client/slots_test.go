package client_test

import (
	"testing"
	"time"

	"github.com/quorlease/quorlease/client"
)

// TestSlotsOfALiveClient: a client has a stream to every node, and the end of one
// must not look like the end of the client.
func TestSlotsOfALiveClient(t *testing.T) {
	const slots = "limits: [{name: crew, concurrency: 3, lease: 10m}]\n"
	one := client.Request{Track: true, Charges: []client.Charge{{Limit: "crew", Dimension: "slots", Amount: 1}}}
	for name, lost := range map[string][]int{"the_one_asked": {0}, "another": {1}, "the_last_one_opened": {2}} {
		t.Run("A13_it_loses_"+name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				if err := w.LimitsFile(slots); err != nil {
					t.Fatal(err)
				}
				c := w.client(nil)
				defer c.Close()
				other := w.client(nil)
				defer other.Close()
				pass(time.Second)
				w.acquire(c, time.Second, one)
				for _, node := range lost {
					w.Down(node)
				}
				pass(time.Minute)
				// What is over goes with the next entry.
				w.ask(other, "open", time.Second)
				if _, leases := w.level("crew", ""); leases != 1 {
					t.Errorf("%d slots are taken a minute later, want 1", leases)
				}
				c.Close()
				pass(time.Minute)
				// What is over goes with the next entry.
				w.ask(other, "open", time.Second)
				if _, leases := w.level("crew", ""); leases != 0 {
					t.Errorf("%d slots are taken a minute after the client's end, want none", leases)
				}
			})
		})
	}
}
