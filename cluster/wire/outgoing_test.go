package wire_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorlease/quorlease/cluster/wire"
)

// Closing must not wait for a peer that says nothing, whether a connection to it
// is being made or is in use (R40).
func TestR40OutgoingCloses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		defer func() { _ = there.Close() }()
		o := wire.NewOutgoing(wire.Network{Dial: func(ctx context.Context, address string) (net.Conn, error) {
			if address == "open" {
				return here, nil
			}
			<-ctx.Done()
			return nil, ctx.Err()
		}})
		dial := o.Network().Dial
		conn, err := dial(t.Context(), "open")
		if err != nil {
			t.Fatal(err)
		}
		var stuck sync.WaitGroup
		stuck.Go(func() {
			if _, err := dial(t.Context(), "silent"); err == nil {
				t.Error("connected")
			}
		})
		stuck.Go(func() {
			if _, err := conn.Read(make([]byte, 1)); err == nil {
				t.Error("something was read")
			}
		})
		synctest.Wait()
		start := time.Now()
		o.Close()
		stuck.Wait()
		if took := time.Since(start); took > 0 {
			t.Errorf("closing took %s", took)
		}
		if _, err := dial(t.Context(), "silent"); err == nil {
			t.Error("a connection was made after Close")
		}
	})
}
