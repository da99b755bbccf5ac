//go:build !linux

package hosts

import (
	"context"
	"fmt"
	"net"
)

// Network is hosts on one bridge. There are none here.
type Network struct{}

// Open says that there are none.
func Open(int) (*Network, error) { return nil, fmt.Errorf("%w: not Linux", ErrUnavailable) }

// Address of none.
func (*Network) Address(int) string { return "" }

// Wrap of none.
func (*Network) Wrap(int) []string { return nil }

// Isolate does nothing.
func (*Network) Isolate(int) error { return ErrUnavailable }

// Join does nothing.
func (*Network) Join(int) error { return ErrUnavailable }

// Part does nothing.
func (*Network) Part(int, ...int) error { return ErrUnavailable }

// Mend does nothing.
func (*Network) Mend(int, ...int) error { return ErrUnavailable }

// Dial dials nobody.
func (*Network) Dial(int) func(context.Context, string) (net.Conn, error) {
	return func(context.Context, string) (net.Conn, error) { return nil, ErrUnavailable }
}

// Listen listens for nobody.
func (*Network) Listen(context.Context, int, string) (net.Listener, error) {
	return nil, ErrUnavailable
}

// Close has nothing to remove.
func (*Network) Close() error { return nil }
