package wire

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// isAlive looks whether the peer has closed conn, without waiting. At rest no
// byte may be waiting either: such a connection is as good as dead. What has
// no socket underneath is taken for alive.
func isAlive(conn net.Conn) bool {
	for {
		inner, ok := conn.(interface{ NetConn() net.Conn })
		if !ok {
			break
		}
		conn = inner.NetConn()
	}
	sys, ok := conn.(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := sys.SyscallConn()
	if err != nil {
		return false
	}
	alive := false
	err = raw.Control(func(fd uintptr) {
		var b [1]byte
		_, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		alive = err == unix.EAGAIN || err == unix.EINTR
	})
	return err == nil && alive
}
