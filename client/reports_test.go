package client_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorlease/quorlease/client"
)

// slowConn takes a millisecond for each write, and counts them.
type slowConn struct {
	net.Conn
	writes *atomic.Int64
}

func (c slowConn) Write(p []byte) (int, error) {
	c.writes.Add(1)
	<-time.After(time.Millisecond)
	return c.Conn.Write(p)
}

// TestBusyClientsReportInTurns: what is done by permits gathers before it is told, also
// where more is done while that is on its way. Otherwise a busy client would report
// without a pause.
func TestBusyClientsReportInTurns(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var writes atomic.Int64
		c := w.client(func(config *client.Config) {
			config.Dial = func(ctx context.Context, address string) (net.Conn, error) {
				conn, err := w.Dial(ctx, address)
				if err != nil {
					return nil, err
				}
				return slowConn{conn, &writes}, nil
			}
		})
		defer func() {
			_ = c.Close()
			// What is being written when a connection is closed.
			<-time.After(time.Second)
		}()
		if d := w.ask(c, "open", time.Second); !d.Granted {
			t.Fatalf("%+v", d)
		}
		before := writes.Load()
		const permits = 4000
		for range permits {
			if v := c.Tries().Permit(0); !v.Admit {
				t.Fatalf("%+v", v)
			}
			<-time.After(500 * time.Microsecond)
		}
		if took := writes.Load() - before; took > 400 {
			t.Errorf("%d writes in 2 s: it reports all the time", took)
		}
		<-time.After(time.Second)
		if got := w.counted("billing").Count.Total; got != permits {
			t.Errorf("%d are counted, want %d", got, permits)
		}
	})
}
