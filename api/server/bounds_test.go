package server_test

import (
	"errors"
	"net"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server"
)

// G10: ten thousand connections that say nothing, and ten thousand that speak
// HTTP/2 and then nothing, leave memory where it was, and honest callers are
// served as soon as there is room.
func TestG10IdleConnections(t *testing.T) {
	_, _, address := start(t, nil)
	conn := dial(t, address)
	configure(t, conn, "a", nil)

	count := 10_000
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err == nil && files.Cur < uint64(count)+2000 {
		count = int(files.Cur) / 2
	}
	before := heap()
	var idle []net.Conn
	defer func() {
		for _, c := range idle {
			c.Close()
		}
	}()
	for i := range count {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		idle = append(idle, c)
		if i%2 == 0 {
			// The preface and empty settings: a handshake that succeeds.
			_, _ = c.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"))
		}
	}
	grown := heap() - before
	t.Logf("%d idle connections take %d MiB", count, grown>>20)
	if grown > 64<<20 {
		t.Errorf("%d idle connections take %d MiB", count, grown>>20)
	}
	// A connection that is there already is served; a new one is closed, not left
	// hanging.
	_, err := quorleasev1.NewAdmissionClient(conn).Peek(patient(t), &quorleasev1.PeekRequest{Charges: charge("a", 1)})
	if err != nil {
		t.Errorf("an honest connection: %v", err)
	}
	_ = idle[count-1].SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := idle[count-1].Read(make([]byte, 1)); err == nil || errors.Is(err, syscall.EAGAIN) {
		t.Errorf("the last of %d connections: %v", count, err)
	}
	var timeout net.Error
	if _, err := idle[count-1].Read(make([]byte, 1)); errors.As(err, &timeout) && timeout.Timeout() {
		t.Error("the last connection hangs")
	}
}

// heap is what is in use after a collection. Stacks count: a connection is
// mostly stacks and buffers.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// A connection that does not begin to speak is closed.
func TestSilentConnectionIsClosed(t *testing.T) {
	t.Parallel()
	_, _, address := start(t, nil)
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
	began := time.Now()
	buffer := make([]byte, 1024)
	for err == nil {
		_, err = c.Read(buffer)
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		t.Errorf("still open after %v", time.Since(began))
	}
}

func TestTooManyCalls(t *testing.T) {
	t.Parallel()
	node, _, address := start(t, func(c *server.Config) { c.StreamsMax = 3 })
	configure(t, dial(t, address), "a", nil)
	node.Hold()
	stream := open(t, patient(t), address, hello())
	send(t, stream, acquireItem(1, "a"))
	other := open(t, patient(t), address, hello())
	send(t, other, acquireItem(1, "a"))
	third := open(t, patient(t), address, hello())
	send(t, third, acquireItem(1, "a"))
	eventually(t, func() bool { _, held, _ := node.Counts(); return held == 3 })
	admission := quorleasev1.NewAdmissionClient(dial(t, address))
	_, err := admission.Acquire(patient(t), &quorleasev1.AcquireRequest{Charges: charge("a", 1)})
	if e := server.ErrorOf(err); e.Cause.Reason != "OVERLOADED" || e.Cause.MayHaveHappened {
		t.Errorf("the fourth: %v", err)
	}
	node.Resume()
	if err := third.CloseSend(); err != nil {
		t.Fatal(err)
	}
	// A call that ended makes room.
	eventually(t, func() bool {
		_, err = admission.Acquire(patient(t), &quorleasev1.AcquireRequest{Charges: charge("a", 1)})
		return err == nil
	})
}

func TestLargeMessageIsRefused(t *testing.T) {
	t.Parallel()
	node, _, address := start(t, nil)
	_, err := quorleasev1.NewAdmissionClient(dial(t, address)).Acquire(patient(t),
		&quorleasev1.AcquireRequest{Client: strings.Repeat("c", 600<<10)})
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("got %v", err)
	}
	if submitted, _, _ := node.Counts(); submitted != 0 {
		t.Errorf("%d operations reached the node", submitted)
	}
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	config := server.DefaultConfig()
	config.ConnectionsMax, config.SessionBytesMax = 0, 5
	_, err := server.New(config)
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{
		"node: missing", "events: missing", "connections max 0: must be at least 1",
		"session bytes max 5: must be at least 1048576",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}
