package wire

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// piped is an accepted connection with limits, and the peer's end of it.
func piped(t *testing.T, l Limits, dialed bool) (c *limited, peer net.Conn) {
	t.Helper()
	near, peer := net.Pipe()
	c = limit(near, l, dialed, nil)
	t.Cleanup(func() {
		_ = c.Close()
		_ = peer.Close()
	})
	return c, peer
}

// bubble runs a test in virtual time.
func bubble(t *testing.T, name string, test func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

// write writes in the background and returns what came of it.
func write(conn net.Conn, s string) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := io.WriteString(conn, s)
		done <- err
	}()
	return done
}

func TestAcceptedLimits(t *testing.T) {
	t.Parallel()
	bubble(t, "R39_an_idle_connection_ends_as_if_closed", func(t *testing.T) {
		c, _ := piped(t, Limits{}, false)
		start := time.Now()
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) || time.Since(start) != 10*time.Minute {
			t.Errorf("got %v after %s, want EOF after 10 min", err, time.Since(start))
		}
	})
	bubble(t, "R39_a_message_that_stops_in_the_middle", func(t *testing.T) {
		c, peer := piped(t, Limits{}, false)
		write(peer, "\x00half")
		b := make([]byte, 100)
		if n, err := c.Read(b); n != 5 || err != nil {
			t.Fatalf("got %d, %v", n, err)
		}
		start := time.Now()
		if _, err := c.Read(b); !errors.Is(err, ErrStalled) || time.Since(start) != 10*time.Second {
			t.Errorf("got %v after %s, want stalled after 10 s", err, time.Since(start))
		}
	})
	bubble(t, "R21_a_slow_snapshot_goes_on_while_it_moves", func(t *testing.T) {
		c, peer := piped(t, Limits{Message: 4, Snapshot: 1000}, false)
		go func() {
			for range 100 {
				<-time.After(9 * time.Second)
				_, _ = peer.Write([]byte{rpcInstallSnapshot, 0, 0, 0, 0})
			}
		}()
		if n, err := io.CopyN(io.Discard, c, 500); n != 500 || err != nil {
			t.Errorf("got %d bytes, %v", n, err)
		}
	})
	bubble(t, "R39_a_message_that_is_too_large", func(t *testing.T) {
		for first, most := range map[byte]int64{0: 10, rpcInstallSnapshot: 20} {
			c, peer := piped(t, Limits{Message: 10, Snapshot: 20}, false)
			write(peer, string(first)+strings.Repeat("x", 100))
			n, err := io.Copy(io.Discard, io.MultiReader(io.LimitReader(c, most), c))
			if n != most || !errors.Is(err, ErrTooLarge) {
				t.Errorf("first byte %d: got %d bytes, %v, want %d and too large", first, n, err, most)
			}
		}
	})
	bubble(t, "each_message_has_its_own_bound", func(t *testing.T) {
		c, peer := piped(t, Limits{Message: 10}, false)
		for range 5 {
			write(peer, "\x0012345678")
			if _, err := io.ReadFull(c, make([]byte, 9)); err != nil {
				t.Fatal(err)
			}
			answered := write(c, "ok")
			if _, err := io.ReadFull(peer, make([]byte, 2)); err != nil || <-answered != nil {
				t.Fatal("answer failed")
			}
			<-time.After(5 * time.Minute)
		}
	})
	bubble(t, "R39_an_answer_that_nobody_reads", func(t *testing.T) {
		c, _ := piped(t, Limits{}, false)
		start := time.Now()
		if err := <-write(c, "ok"); !errors.Is(err, ErrStalled) || time.Since(start) != 10*time.Second {
			t.Errorf("got %v after %s, want stalled after 10 s", err, time.Since(start))
		}
	})
}

func TestDialedLimits(t *testing.T) {
	t.Parallel()
	bubble(t, "R21_an_answer_may_take_as_long_as_a_restore", func(t *testing.T) {
		c, peer := piped(t, Limits{}, true)
		sent := write(c, "request")
		if _, err := io.ReadFull(peer, make([]byte, 7)); err != nil || <-sent != nil {
			t.Fatal("request failed")
		}
		time.AfterFunc(110*time.Second, func() { write(peer, "ok") })
		if _, err := io.ReadFull(c, make([]byte, 2)); err != nil {
			t.Errorf("an answer after 110 s: %v", err)
		}
	})
	bubble(t, "R21_and_no_longer", func(t *testing.T) {
		c, peer := piped(t, Limits{}, true)
		go func() { _, _ = io.Copy(io.Discard, peer) }()
		if err := <-write(c, "request"); err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(11 * time.Hour))
		start := time.Now()
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, ErrStalled) || time.Since(start) != 2*time.Minute {
			t.Errorf("got %v after %s, want stalled after 2 min", err, time.Since(start))
		}
	})
	bubble(t, "R21_a_large_write_goes_on_while_it_moves", func(t *testing.T) {
		c, peer := piped(t, Limits{}, true)
		sent := write(c, strings.Repeat("x", 4*writeChunk))
		for range 4 {
			<-time.After(9 * time.Second)
			if _, err := io.ReadFull(peer, make([]byte, writeChunk)); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-sent; err != nil {
			t.Errorf("got %v, want 36 s of progress to be fine", err)
		}
	})
	bubble(t, "the_owners_deadline_is_its_own", func(t *testing.T) {
		c, _ := piped(t, Limits{}, true)
		_ = c.SetDeadline(time.Now().Add(time.Second))
		_, err := c.Read(make([]byte, 1))
		if !errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, ErrStalled) {
			t.Errorf("read: got %v, want the deadline alone", err)
		}
		_ = c.SetReadDeadline(time.Time{})
		_ = c.SetWriteDeadline(time.Now().Add(time.Second))
		if err := <-write(c, "x"); !errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, ErrStalled) {
			t.Errorf("write: got %v, want the deadline alone", err)
		}
	})
	bubble(t, "closed", func(t *testing.T) {
		c, _ := piped(t, Limits{}, true)
		_ = c.Close()
		if err := <-write(c, "x"); !errors.Is(err, net.ErrClosed) {
			t.Errorf("got %v, want closed", err)
		}
	})
}

// TestReplace: a pooled connection whose peer restarted does not cost a
// request.
func TestReplace(t *testing.T) {
	t.Parallel()
	p := newPair(t, nil)
	p.echo(t)
	addr := p.Addr().String()
	conn, err := p.dialer.DialRaft(addr, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got, err := say(conn, "one"); err != nil || got != "raft one" {
		t.Fatalf("got %q, %v", got, err)
	}
	_ = p.Close()
	again := newPair(t, func(l *Config, _ *DialerConfig) { l.Addr = addr })
	again.echo(t)
	eventually(t, "the end of the old connection to arrive", func() bool {
		return !isAlive(conn.(*limited).current())
	})
	if got, err := say(conn, "two"); err != nil || got != "raft two" {
		t.Errorf("after the restart: got %q, %v, want a new connection underneath", got, err)
	}
	_ = again.Close()
	if _, err := say(conn, "three"); err == nil {
		t.Error("nobody listens any more, but the request went through")
	}
}

func TestQuiet(t *testing.T) {
	t.Parallel()
	var q quiet
	start := time.Now()
	for after, want := range []bool{true, false, false} {
		if got := q.allows(start.Add(time.Duration(after)*29*time.Second), "a"); got != want {
			t.Errorf("after %d: got %v, want %v", after, got, want)
		}
	}
	if !q.allows(start.Add(time.Minute), "a") || !q.allows(start.Add(time.Minute), "b") {
		t.Error("a minute later, and for another source, a line is allowed")
	}
	for i := range 5000 {
		q.allows(start.Add(time.Minute), strings.Repeat("x", i+1))
	}
	if n := len(q.last); n > sourcesMost {
		t.Errorf("%d sources kept, at most %d", n, sourcesMost)
	}
	if !q.allows(start.Add(3*time.Minute), "c") {
		t.Error("full of old sources: a new one is allowed again")
	}
}
