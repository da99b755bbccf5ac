package server_test

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"github.com/quorlease/quorlease/api/capped"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server"
)

// G10: as many connections as there may be, which say nothing, keep nobody out,
// and one that has spoken keeps its place whoever comes.
func TestG10SilentConnectionsMakeRoom(t *testing.T) {
	t.Parallel()
	const most = 8
	_, _, address := start(t, func(c *server.Config) { c.ConnectionsMax = most })
	first := dial(t, address)
	configure(t, first, "a", nil)
	for i := range 3 * most {
		if c := connect(t, address); i%2 == 0 {
			_, _ = c.Write([]byte("PRI * HTTP/2.0"))
		}
	}
	request := &quorleasev1.PeekRequest{Charges: charge("a", 1)}
	began := time.Now()
	for range most - 1 {
		if _, err := quorleasev1.NewAdmissionClient(dial(t, address)).Peek(patient(t), request); err != nil {
			t.Fatalf("an honest call: %v", err)
		}
	}
	// Silent ones are closed after five seconds anyway: that is not what made room.
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("honest calls took %v", took)
	}
	// Nobody is silent any more: one too many is closed, and the rest are served.
	expectClosed(t, connect(t, address))
	if _, err := quorleasev1.NewAdmissionClient(first).Peek(patient(t), request); err != nil {
		t.Errorf("the oldest connection: %v", err)
	}
}

func connect(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func expectClosed(t *testing.T, c net.Conn) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("left hanging: %v", err)
	}
}

// Who leaves, twice or after being pushed out, gives one place back.
func TestCrowd(t *testing.T) {
	t.Parallel()
	crowd := capped.NewCrowd(2)
	var all [5]net.Conn
	for i := range all {
		a, b := net.Pipe()
		b.Close()
		all[i] = a
	}
	enter := func(what string, i int, want net.Conn) {
		t.Helper()
		if got := crowd.Enter(all[i]); got != want {
			t.Errorf("%s: %p has to go, want %p", what, got, want)
		}
	}
	enter("the first", 0, nil)
	enter("the second", 1, nil)
	enter("the third pushes out the first", 2, all[0])
	crowd.Leave(all[0])
	crowd.Spoke(all[0])
	crowd.Spoke(all[1])
	crowd.Spoke(all[1])
	enter("the fourth pushes out the third, since the second has spoken", 3, all[2])
	crowd.Spoke(all[3])
	enter("the fifth is itself too many", 4, all[4])
	crowd.Leave(all[4])
	crowd.Leave(all[1])
	crowd.Leave(all[1])
	enter("there is one place", 0, nil)
	enter("and not two", 2, all[0])
}
