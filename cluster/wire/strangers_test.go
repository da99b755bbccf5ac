package wire

import (
	"net"
	"sync/atomic"
	"testing"
)

// TestMembersKeepTheirRoom: whoever names no cluster may look for one, but not
// take the connections of members.
func TestMembersKeepTheirRoom(t *testing.T) {
	t.Parallel()
	var strange atomic.Bool
	p := newPair(t, func(l *Config, d *DialerConfig) {
		l.ConnsMax = 8
		self := d.Self
		d.Self = func() (string, string) {
			if strange.Load() {
				return "", "evil.66666666"
			}
			return self()
		}
	})
	p.echo(t)
	member, _, err := p.dial(GRPC)
	if err != nil {
		t.Fatal(err)
	}
	defer member.Close()
	strange.Store(true)
	var first net.Conn
	for i := range 20 {
		conn, _, err := p.dial(GRPC)
		if err != nil {
			t.Fatalf("stranger %d: %v", i, err)
		}
		defer conn.Close()
		if i == 0 {
			first = conn
		}
	}
	if _, err := first.Read(make([]byte, 1)); err == nil {
		t.Error("the oldest stranger is still there")
	}
	strange.Store(false)
	for range 5 {
		conn, _, err := p.dial(Raft)
		if err != nil {
			t.Fatalf("a member among 20 strangers: %v", err)
		}
		defer conn.Close()
	}
	if got, err := say(member, "x"); err != nil || got != "grpc x" {
		t.Errorf("the member that was there: got %q, %v", got, err)
	}
}
