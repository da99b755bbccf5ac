// Package netaddr checks addresses and opens listeners, with errors that name the
// flag and the address.
package netaddr

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/quorlease/quorlease/cmd/quorlease/exit"
)

// resolvePatience bounds the look-up of a host name at start.
const resolvePatience = 5 * time.Second

// Check refuses what is not host:port.
func Check(name, addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || strings.ContainsAny(host, " /") {
		return exit.Usagef("%s %q is not host:port", name, addr)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return exit.Usagef("%s %q has no port between 0 and 65535", name, addr)
	}
	return nil
}

// CheckLoopback refuses an address that can be reached from elsewhere, since
// there is no TLS yet. A name counts as what it resolves to, every address of
// it; the unspecified address is every interface of the machine.
func CheckLoopback(ctx context.Context, flag, addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return exit.Usagef("%s %q is not host:port", flag, addr)
	}
	beyond := func(what string) error {
		return exit.Usagef("%s %s listens beyond loopback%s, and without TLS: "+
			"take 127.0.0.1, or accept plaintext on the network with --insecure", flag, addr, what)
	}
	if host == "" {
		return beyond(" (no host is every interface)")
	}
	ctx, cancel := context.WithTimeout(ctx, resolvePatience)
	defer cancel()
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return exit.Usagef("%s %s: the host does not resolve: %w", flag, addr, err)
	}
	for _, ip := range ips {
		if !ip.Unmap().IsLoopback() {
			return beyond(isName(host, ip))
		}
	}
	return nil
}

// isName says what a name resolved to, and nothing of an address.
func isName(host string, ip netip.Addr) string {
	if _, err := netip.ParseAddr(host); err == nil {
		return ""
	}
	return fmt.Sprintf(" (%s is %s)", host, ip)
}

// Unspecified says whether an address names every interface, so that nobody
// else could dial it.
func Unspecified(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.IsUnspecified()
}

// Listen opens a listener. A port that is taken is an error that names the
// flag and the address.
func Listen(ctx context.Context, flag, addr string) (net.Listener, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, listenError(flag, addr, err)
	}
	return l, nil
}

func listenError(flag, addr string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s %s is taken: another program listens there", flag, addr)
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Err != nil {
		err = op.Err
	}
	return fmt.Errorf("%s: listen on %s: %w", flag, addr, err)
}
