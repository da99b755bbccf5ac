package wire

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"
)

func TestOutgoing(t *testing.T) {
	t.Parallel()
	t.Run("R40_close_ends_what_was_dialled", func(t *testing.T) {
		t.Parallel()
		o := NewOutgoing(Network{})
		p := newPair(t, func(_ *Config, d *DialerConfig) { d.Network = o.Network() })
		p.echo(t)
		conn, err := p.dialer.DialRaft(p.Addr().String(), time.Second)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if !isAlive(conn.(*limited).current()) {
			t.Error("a connection just made is dead")
		}
		gone, err := p.dialer.DialGRPC(t.Context(), p.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_ = gone.Close()
		if n := len(o.mu.conns); n != 1 {
			t.Errorf("%d connections held, want 1", n)
		}
		o.Close()
		if _, err := say(conn, "x"); err == nil {
			t.Error("a closed connection still answers")
		}
		if _, err := p.dialer.DialGRPC(t.Context(), p.Addr().String()); err == nil {
			t.Error("dialled after Close")
		}
	})
	t.Run("R40_close_ends_an_attempt", func(t *testing.T) {
		t.Parallel()
		begun := make(chan struct{})
		o := NewOutgoing(Network{Dial: func(ctx context.Context, _ string) (net.Conn, error) {
			close(begun)
			<-ctx.Done()
			return nil, ctx.Err()
		}})
		done := make(chan error)
		go func() {
			_, err := o.Network().Dial(context.Background(), "x")
			done <- err
		}()
		<-begun
		o.Close()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want canceled", err)
		}
	})
}
