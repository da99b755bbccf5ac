package wire

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
)

// logs is a logger's output.
type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// count is how many lines hold text.
func (l *logs) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for s := bufio.NewScanner(bytes.NewReader(l.b.Bytes())); s.Scan(); {
		if strings.Contains(s.Text(), text) {
			n++
		}
	}
	return n
}

// pair is a listener of node n2 and a dialer of node n1.
type pair struct {
	*Listener
	dialer *Dialer
	logs   *logs
}

func newPair(t *testing.T, change func(*Config, *DialerConfig)) *pair {
	t.Helper()
	p := &pair{logs: &logs{}}
	lc := Config{
		Addr:   "127.0.0.1:0",
		Self:   func() (string, string) { return clusterX, "n2.22222222" },
		Admit:  func(Kind, string, string) error { return nil },
		Logger: hclog.New(&hclog.LoggerOptions{Output: p.logs}),
	}
	dc := DialerConfig{Self: func() (string, string) { return clusterX, "n1.11111111" }, Logger: lc.Logger}
	if change != nil {
		change(&lc, &dc)
	}
	l, err := Listen(t.Context(), lc)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	p.Listener, p.dialer = l, NewDialer(dc)
	return p
}

// echo answers every line on both doors until they close.
func (p *pair) echo(t *testing.T) {
	t.Helper()
	var running sync.WaitGroup
	for kind, door := range map[string]net.Listener{"raft": p.Raft(), "grpc": p.GRPC()} {
		running.Go(func() {
			for {
				conn, err := door.Accept()
				if err != nil {
					return
				}
				running.Go(func() {
					defer conn.Close()
					for s := bufio.NewScanner(conn); s.Scan(); {
						if _, err := io.WriteString(conn, kind+" "+s.Text()+"\n"); err != nil {
							return
						}
					}
				})
			}
		})
	}
	t.Cleanup(func() {
		_ = p.Close()
		running.Wait()
	})
}

// say writes a line and reads one.
func say(conn net.Conn, line string) (string, error) {
	if _, err := io.WriteString(conn, line+"\n"); err != nil {
		return "", err
	}
	b := make([]byte, 100)
	n, err := conn.Read(b)
	return strings.TrimSpace(string(b[:n])), err
}

func (p *pair) dial(kind Kind) (net.Conn, Peer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return p.dialer.Dial(ctx, kind, p.Addr().String())
}

// raw connects without a handshake.
func (p *pair) raw(t *testing.T) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	return conn
}

// eventually waits for a condition that other goroutines make true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("not within 10 s: %s", what)
		}
	}
}
