package clustertest_test

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/quorlease/quorlease/cluster/clustertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// listen accepts connections for a node and sends back what it reads, until the
// test ends.
func listen(t *testing.T, board *clustertest.Board, name, address string) {
	t.Helper()
	l, err := board.For(name).Listen(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer func() { _ = conn.Close() }()
				_, _ = io.Copy(conn, conn)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		serving.Wait()
	})
}

func echo(t *testing.T, conn net.Conn) error {
	t.Helper()
	if _, err := conn.Write([]byte("x")); err != nil {
		return err
	}
	_, err := io.ReadFull(conn, make([]byte, 1))
	return err
}

func TestBoardCutsAndHeals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		board := clustertest.NewBoard(true)
		listen(t, board, "b", "b:1")
		listen(t, board, "c", "c:1")
		dial := board.For("a").Dial
		toB, err := dial(t.Context(), "b:1")
		if err != nil {
			t.Fatal(err)
		}
		toC, err := dial(t.Context(), "c:1")
		if err != nil {
			t.Fatal(err)
		}
		board.Cut("b", "a")
		if err := echo(t, toB); err == nil {
			t.Error("a connection outlived the cut")
		}
		if err := echo(t, toC); err != nil {
			t.Errorf("another pair was cut: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if _, err := dial(ctx, "b:1"); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("dialling over a cut: %v after %s", err, time.Since(start))
		}
		board.Heal("a", "b")
		again, err := dial(t.Context(), "b:1")
		if err != nil {
			t.Fatal(err)
		}
		if err := echo(t, again); err != nil {
			t.Errorf("after healing: %v", err)
		}
		if _, err := dial(t.Context(), "nobody:1"); err == nil {
			t.Error("nobody listens, and a connection was made")
		}
		for _, conn := range []net.Conn{toB, toC, again} {
			_ = conn.Close()
		}
	})
}
