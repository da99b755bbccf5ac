package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// Network opens listeners and connections. TLS is a Network around another
// one; tests use one in memory. Both functions must be safe for concurrent
// use.
type Network struct {
	Listen func(ctx context.Context, addr string) (net.Listener, error)
	// Dial resolves addr anew each time: pods come back under the same name
	// with another address (R35).
	Dial func(ctx context.Context, addr string) (net.Conn, error)
}

// TCP is plain TCP. A peer that vanished without a word is noticed by
// keep-alives within about 30 s, however idle the connection.
func TCP() Network {
	keepAlive := net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}
	listen := net.ListenConfig{KeepAliveConfig: keepAlive}
	dial := net.Dialer{KeepAliveConfig: keepAlive}
	return Network{
		Listen: func(ctx context.Context, addr string) (net.Listener, error) {
			return listen.Listen(ctx, "tcp", addr)
		},
		Dial: func(ctx context.Context, addr string) (net.Conn, error) {
			return dial.DialContext(ctx, "tcp", addr)
		},
	}
}

// listenError is one line that names the flag and the address once: the
// error of package net names the address again.
func listenError(flag, addr string, err error) error {
	cause := err
	if op := (*net.OpError)(nil); errors.As(err, &op) {
		cause = op.Err
	}
	if sys := (*os.SyscallError)(nil); errors.As(cause, &sys) {
		cause = sys.Err
	}
	return fmt.Errorf("listen on %s %s: %w", flag, addr, cause)
}
