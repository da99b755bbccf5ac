package hosts

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// most is how many hosts a network may have.
const most = 200

// opened tells the networks of one process apart.
var opened atomic.Int64

// Network is hosts on one bridge, which has a namespace too. Its methods may be called
// from several goroutines, Close once nobody else does.
type Network struct {
	prefix string
	size   int
	// spaces are the namespaces that were made.
	spaces []string
}

// Open makes a network of so many hosts, 1 to 200.
func Open(size int) (*Network, error) {
	if size < 1 || size > most {
		return nil, fmt.Errorf("hosts: %d is out of range 1..%d", size, most)
	}
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("%w: not root", ErrUnavailable)
	}
	if _, err := exec.LookPath("ip"); err != nil {
		return nil, fmt.Errorf("%w: ip is not installed (Debian: iproute2)", ErrUnavailable)
	}
	n := &Network{prefix: fmt.Sprintf("ql%d.%d-", os.Getpid(), opened.Add(1)), size: size}
	if err := n.build(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, errors.Join(err, n.Close()))
	}
	return n, nil
}

func (n *Network) build() error {
	bridge := n.bridge()
	if err := n.space(bridge); err != nil {
		return err
	}
	if err := all(
		[]string{"-n", bridge, "link", "add", "br0", "type", "bridge"},
		[]string{"-n", bridge, "link", "set", "br0", "up"},
	); err != nil {
		return err
	}
	for i := range n.size {
		host, port := n.Name(i), port(i)
		if err := n.space(host); err != nil {
			return err
		}
		if err := all(
			[]string{"-n", host, "link", "set", "lo", "up"},
			[]string{"link", "add", "eth0", "netns", host, "type", "veth", "peer", "name", port, "netns", bridge},
			[]string{"-n", bridge, "link", "set", port, "master", "br0", "up"},
			[]string{"-n", host, "addr", "add", n.Address(i) + "/24", "dev", "eth0"},
			[]string{"-n", host, "link", "set", "eth0", "up"},
		); err != nil {
			return err
		}
	}
	return nil
}

func (n *Network) space(name string) error {
	if err := ip("netns", "add", name); err != nil {
		return err
	}
	n.spaces = append(n.spaces, name)
	return nil
}

func (n *Network) bridge() string { return n.prefix + "bridge" }

func port(host int) string { return fmt.Sprint("p", host) }

// Name is that of a host's namespace, by its index from 0.
func (n *Network) Name(host int) string { return fmt.Sprint(n.prefix, host) }

// Address is a host's IP address.
func (n *Network) Address(host int) string { return fmt.Sprintf("10.99.0.%d", host+1) }

// Wrap goes in front of a command that is to run on a host.
func (n *Network) Wrap(host int) []string { return []string{"ip", "netns", "exec", n.Name(host)} }

// Isolate takes a host off the network.
func (n *Network) Isolate(host int) error {
	return ip("-n", n.bridge(), "link", "set", port(host), "down")
}

// Join puts it back.
func (n *Network) Join(host int) error { return ip("-n", n.bridge(), "link", "set", port(host), "up") }

// Part keeps a host from sending anything to some others, so that nothing between them
// comes to anything; all others hear it as before.
func (n *Network) Part(host int, from ...int) error { return n.routes("add", host, from) }

// Mend undoes what Part did.
func (n *Network) Mend(host int, from ...int) error { return n.routes("del", host, from) }

func (n *Network) routes(verb string, host int, others []int) error {
	for _, other := range others {
		if err := ip("-n", n.Name(host), "route", verb, "blackhole", n.Address(other)+"/32"); err != nil {
			return err
		}
	}
	return nil
}

// Dial dials TCP as if this process were on a host: a socket stays in the namespace in
// which it was made.
func (n *Network) Dial(from int) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, address string) (conn net.Conn, err error) {
		entered := n.on(from, func() { conn, err = new(net.Dialer).DialContext(ctx, "tcp4", address) })
		return conn, errors.Join(entered, err)
	}
}

// Listen listens for TCP as if this process were on a host, at an address of it such as
// "127.0.0.1:0".
func (n *Network) Listen(ctx context.Context, host int, address string) (l net.Listener, err error) {
	entered := n.on(host, func() { l, err = new(net.ListenConfig).Listen(ctx, "tcp4", address) })
	return l, errors.Join(entered, err)
}

// on does something on a host. The error is that it could not get there.
func (n *Network) on(host int, do func()) error {
	done := make(chan error, 1)
	go func() {
		// The thread is not fit for anything else afterwards, and ends with this.
		runtime.LockOSThread()
		fd, err := unix.Open("/var/run/netns/"+n.Name(host), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			err = unix.Setns(fd, unix.CLONE_NEWNET)
			_ = unix.Close(fd)
		}
		if err != nil {
			done <- fmt.Errorf("enter %s: %w", n.Name(host), err)
			return
		}
		do()
		done <- nil
	}()
	return <-done
}

// Close removes everything. It may be called again.
func (n *Network) Close() error {
	var errs []error
	for _, name := range n.spaces {
		errs = append(errs, ip("netns", "del", name))
	}
	n.spaces = nil
	return errors.Join(errs...)
}

func all(commands ...[]string) error {
	for _, args := range commands {
		if err := ip(args...); err != nil {
			return err
		}
	}
	return nil
}

func ip(args ...string) error {
	//nolint:noctx // It returns at once, and what it undoes must be undone.
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
