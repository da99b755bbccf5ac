package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

func TestDoors(t *testing.T) {
	t.Parallel()
	p := newPair(t, nil)
	p.echo(t)
	for _, kind := range []Kind{Raft, GRPC} {
		conn, peer, err := p.dial(kind)
		if err != nil {
			t.Fatal(err)
		}
		if want := (Peer{Kind: kind, ClusterID: clusterX, RaftID: "n2.22222222"}); peer != want {
			t.Errorf("%s: got %+v answering, want %+v", kind, peer, want)
		}
		for range 3 {
			if got, err := say(conn, "hello"); err != nil || got != kind.String()+" hello" {
				t.Errorf("%s: got %q, %v", kind, got, err)
			}
		}
		_ = conn.Close()
	}
	for name, dial := range map[string]func() (net.Conn, error){
		"raft": func() (net.Conn, error) { return p.dialer.DialRaft(p.Addr().String(), time.Second) },
		"grpc": func() (net.Conn, error) { return p.dialer.DialGRPC(t.Context(), p.Addr().String()) },
	} {
		conn, err := dial()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := say(conn, "x"); err != nil || got != name+" x" {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
		_ = conn.Close()
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	unknown := errors.New("n1.11111111 is not in the configuration")
	cases := []struct {
		name   string
		change func(*Config, *DialerConfig)
		want   error
		text   string
	}{
		{
			"R36_another_cluster",
			func(_ *Config, d *DialerConfig) { d.Self = func() (string, string) { return clusterY, "n1.11111111" } },
			ErrOtherCluster, clusterX,
		},
		{
			"R38_an_unknown_node",
			func(l *Config, _ *DialerConfig) { l.Admit = func(Kind, string, string) error { return unknown } },
			ErrUnknownNode, "is not in the configuration",
		},
		{
			"R35_another_node_at_the_address",
			func(_ *Config, d *DialerConfig) { d.Expect = func(string) string { return "n3.33333333" } },
			ErrOtherNode, "n2.22222222 instead of n3.33333333",
		},
		{
			"R36_a_cluster_that_only_the_answer_names",
			func(l *Config, d *DialerConfig) {
				calls := 0
				l.Self = func() (string, string) {
					// It joined another cluster between the check and the answer.
					if calls++; calls == 1 {
						return "", "n2.22222222"
					}
					return clusterY, "n2.22222222"
				}
			},
			ErrOtherCluster, clusterY,
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPair(t, c.change)
			p.echo(t)
			for range 3 {
				conn, _, err := p.dial(Raft)
				if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
					t.Errorf("got %v, %v, want %v with %q", conn, err, c.want, c.text)
				}
			}
			if n := p.logs.count("peer handshake failed"); n != 1 {
				t.Errorf("the dialer logged %d lines, want 1", n)
			}
			if n := p.logs.count("peer refused"); n > 1 {
				t.Errorf("the acceptor logged %d lines, at most 1", n)
			}
		})
	}
	t.Run("R36_nodes_without_a_cluster_may_talk", func(t *testing.T) {
		t.Parallel()
		p := newPair(t, func(_ *Config, d *DialerConfig) { d.Self = func() (string, string) { return "", "n1.11111111" } })
		p.echo(t)
		conn, peer, err := p.dial(GRPC)
		if err != nil || peer.ClusterID != clusterX {
			t.Fatalf("got %+v, %v", peer, err)
		}
		_ = conn.Close()
	})
}

// TestStrangers: no byte of what a stranger sends reaches Raft, and it learns
// nothing but that it was refused.
func TestStrangers(t *testing.T) {
	t.Parallel()
	p := newPair(t, func(l *Config, _ *DialerConfig) {
		l.Admit = func(_ Kind, _, raftID string) error { return fmt.Errorf("%.40s is not a member", raftID) }
	})
	accepted := make(chan net.Conn, 10)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := p.Raft().Accept()
			if err != nil {
				return
			}
			accepted <- conn
		}
	}()
	hello := string(encodeHello(Peer{Kind: Raft, ClusterID: clusterX, RaftID: "evil.66666666"}))
	for name, raw := range map[string]string{
		"raft_without_a_handshake": "\x00" + strings.Repeat("\xff", 1000),
		"R38_timeout_now":          hello + "\x03\x80",
		"R38_append_entries":       hello + "\x00" + strings.Repeat("\xff", 1000),
		"http":                     "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n",
		"another_version":          hello[:5] + "\x09" + hello[6:],
	} {
		t.Run(name, func(t *testing.T) {
			before := p.Refused()
			conn := p.raw(t)
			if _, err := io.WriteString(conn, raw); err != nil {
				t.Fatal(err)
			}
			// A reset, for bytes that nobody read, is an end too.
			answer, _ := io.ReadAll(conn)
			if len(answer) > 700 {
				t.Errorf("%d bytes of answer", len(answer))
			}
			eventually(t, "counted as refused", func() bool { return p.Refused() == before+1 })
		})
	}
	_ = p.Close()
	<-done
	if len(accepted) != 0 {
		t.Errorf("%d connections reached Raft", len(accepted))
	}
	if n := p.logs.count("peer refused"); n != 1 {
		t.Errorf("%d lines logged of one source, want 1", n)
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	t.Run("silence_ends_at_the_deadline", func(t *testing.T) {
		t.Parallel()
		p := newPair(t, func(l *Config, _ *DialerConfig) { l.Timeout = 50 * time.Millisecond })
		conn := p.raw(t)
		if _, err := io.ReadAll(conn); err != nil {
			t.Errorf("got %v, want the connection closed", err)
		}
	})
	t.Run("idle_strangers_push_out_one_another", func(t *testing.T) {
		t.Parallel()
		p := newPair(t, func(l *Config, _ *DialerConfig) { l.PendingMax, l.Timeout = 8, time.Minute })
		p.echo(t)
		first := p.raw(t)
		for range 100 {
			p.raw(t)
		}
		if _, err := io.ReadAll(first); err != nil {
			t.Errorf("the oldest: got %v, want it closed", err)
		}
		conn, _, err := p.dial(GRPC)
		if err != nil {
			t.Fatalf("an honest peer among 100 strangers: %v", err)
		}
		_ = conn.Close()
		p.mu.Lock()
		defer p.mu.Unlock()
		if n := len(p.mu.pending); n > 8 {
			t.Errorf("%d pending, at most 8", n)
		}
	})
	t.Run("admitted_connections", func(t *testing.T) {
		t.Parallel()
		p := newPair(t, func(l *Config, _ *DialerConfig) { l.ConnsMax = 3 })
		p.echo(t)
		var conns []net.Conn
		for range 3 {
			conn, _, err := p.dial(GRPC)
			if err != nil {
				t.Fatal(err)
			}
			conns = append(conns, conn)
		}
		if _, _, err := p.dial(GRPC); !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "3, at most 3") {
			t.Errorf("the fourth: got %v, want busy", err)
		}
		_ = conns[0].Close()
		eventually(t, "room for one more", func() bool {
			conn, _, err := p.dial(GRPC)
			if err == nil {
				conns = append(conns, conn)
			}
			return err == nil
		})
		for _, c := range conns {
			_ = c.Close()
		}
	})
	t.Run("nobody_accepts", func(t *testing.T) {
		t.Parallel()
		p := newPair(t, func(l *Config, _ *DialerConfig) { l.Timeout = 50 * time.Millisecond })
		conn, _, err := p.dial(Raft)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("got %v, want the connection closed", err)
		}
	})
}

func TestPortTaken(t *testing.T) {
	t.Parallel()
	p := newPair(t, nil)
	addr := p.Addr().String()
	_, err := Listen(t.Context(), Config{Addr: addr})
	if err == nil {
		t.Fatal("got no error")
	}
	if want := "listen on --peer " + addr + ": address already in use"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	if _, err := Listen(t.Context(), Config{Addr: "no such host:1", Flag: "--x"}); err == nil ||
		!strings.HasPrefix(err.Error(), "listen on --x no such host:1: ") {
		t.Errorf("an address that is none: got %v", err)
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	t.Run("R40_admitted_connections_are_closed", func(t *testing.T) {
		t.Parallel()
		p := newPair(t, nil)
		p.echo(t)
		conn, _, err := p.dial(Raft)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := say(conn, "x"); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(p.Close(), p.Close()); err != nil {
			t.Error(err)
		}
		if _, err := conn.Read(make([]byte, 1)); err == nil {
			t.Error("still open after Close")
		}
	})
	t.Run("a_door_closes_by_itself", func(t *testing.T) {
		t.Parallel()
		p := newPair(t, nil)
		_ = p.Raft().Close()
		_ = p.Raft().Close()
		if _, err := p.Raft().Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("got %v, want closed", err)
		}
		p.echo(t)
		conn, _, err := p.dial(GRPC)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := say(conn, "x"); err != nil || got != "grpc x" {
			t.Errorf("the other door: got %q, %v", got, err)
		}
		_ = conn.Close()
	})
	t.Run("a_handshake_under_way_ends", func(t *testing.T) {
		t.Parallel()
		p := newPair(t, nil)
		conn := p.raw(t)
		eventually(t, "the handshake to begin", func() bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			return len(p.mu.pending) == 1
		})
		_ = p.Close()
		if _, err := io.ReadAll(conn); err != nil {
			t.Errorf("got %v, want the end", err)
		}
	})
}

func TestDialErrors(t *testing.T) {
	t.Parallel()
	t.Run("a_hung_acceptor", func(t *testing.T) {
		t.Parallel()
		hung, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer hung.Close()
		d := NewDialer(DialerConfig{Timeout: 50 * time.Millisecond, Self: func() (string, string) { return "", "n1" }})
		if _, err := d.DialRaft(hung.Addr().String(), 0); err == nil || !strings.Contains(err.Error(), "shake hands") {
			t.Errorf("got %v, want an error of the handshake", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := d.DialGRPC(ctx, hung.Addr().String()); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want canceled", err)
		}
	})
	t.Run("something_else_listens", func(t *testing.T) {
		t.Parallel()
		other, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		go func() {
			conn, err := other.Accept()
			if err == nil {
				_, _ = io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\n\r\n")
				_ = conn.Close()
			}
		}()
		d := NewDialer(DialerConfig{Self: func() (string, string) { return "", "n1" }})
		_, err = d.DialRaft(other.Addr().String(), 0)
		if err == nil || !strings.Contains(err.Error(), "not that of a Quorlease") {
			t.Errorf("got %v, want: not a Quorlease node", err)
		}
	})
}
