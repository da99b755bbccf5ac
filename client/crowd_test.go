package client_test

import (
	"sync"
	"testing"
	"time"

	"github.com/quorlease/quorlease/client"
)

// TestAHundredClients: a hundred processes lose the authority together. Each goes
// on, tells of it once and is back, and everything they admitted is booked.
func TestAHundredClients(t *testing.T) {
	t.Run("G8_each_goes_on_and_tells_once", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			const crowd = 100
			clients := make([]*client.Client, crowd)
			for i := range clients {
				clients[i] = w.client(nil)
				defer clients[i].Close()
				w.ask(clients[i], "open", time.Second)
			}
			w.NoQuorum()
			var callers sync.WaitGroup
			for _, c := range clients {
				callers.Go(func() {
					if granted, _ := w.offer(c, "open", 50*time.Millisecond, 5*time.Second); granted < 90 {
						t.Errorf("%d granted, want nearly all of 100", granted)
					}
				})
			}
			callers.Wait()
			w.wantAlerts(crowd, 0)
			w.Serve()
			pass(5 * time.Second)
			w.wantAlerts(crowd, crowd)
			var admitted int64
			for _, c := range clients {
				admitted += c.Status().Admitted[0].Tokens
			}
			if got, sessions := w.reported("open", "tenant-1"); got != admitted || sessions != crowd {
				t.Errorf("%d tokens of %d sessions booked, want %d of %d", got, sessions, admitted, crowd)
			}
		})
	})
}
