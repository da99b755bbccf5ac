package client_test

import (
	"testing"
	"time"

	"github.com/quorlease/quorlease/client"
)

// TestLocalLeases: of a lease that the client granted by itself nobody is asked, and what
// is said of it answers as the authority would.
func TestLocalLeases(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c := w.client(nil)
		defer c.Close()
		lease, used := client.Lease{Local: true}, client.Usage{Dimension: "requests", Used: 1}
		for want, ask := range map[string]func() (*client.Settlement, error){
			"SETTLED":  func() (*client.Settlement, error) { return c.Settle(t.Context(), lease, used) },
			"OPEN":     func() (*client.Settlement, error) { return c.Progress(t.Context(), lease, used) },
			"RELEASED": func() (*client.Settlement, error) { return c.Release(t.Context(), lease) },
		} {
			if got, err := ask(); err != nil || !got.Local || got.State != want {
				t.Errorf("%+v, %v; want %s", got, err, want)
			}
		}
		got, err := c.Renew(t.Context(), lease, client.Renewal{TTL: time.Minute})
		if err != nil || got.State != "OPEN" {
			t.Errorf("renewed: %+v, %v", got, err)
		}
	})
}
