package dev

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/quorlease/quorlease/cmd/quorlease/exit"
	"github.com/quorlease/quorlease/cmd/quorlease/netaddr"
	"github.com/quorlease/quorlease/cmd/quorlease/supervise"
)

// member is one node of a layout. It is written to the data directory, so that
// the cluster is found at the same addresses again.
type member struct {
	ID   string `yaml:"id"`
	GRPC string `yaml:"grpc"`
	Peer string `yaml:"peer"`
	HTTP string `yaml:"http"`
}

// layout says where the nodes of a development cluster live.
type layout struct {
	dir       string
	temporary bool
	members   []member
}

// layoutFile is the name of the written layout within the data directory.
const layoutFile = "dev.yaml"

// newLayout finds or makes the layout. Every port is tried before any node is
// started, so that one that is taken gives one clear line.
func newLayout(ctx context.Context, o Options) (*layout, error) {
	l := &layout{dir: o.Data}
	if err := l.load(); err != nil {
		return nil, err
	}
	if l.members != nil {
		if err := l.matches(o); err != nil {
			return nil, err
		}
		return l, l.tryPorts(ctx)
	}
	members, err := newMembers(ctx, o)
	if err != nil {
		return nil, err
	}
	l.members = members
	if err := l.tryPorts(ctx); err != nil {
		return nil, err
	}
	return l, l.make()
}

// load reads what an earlier run wrote.
func (l *layout) load() error {
	if l.dir == "" {
		return nil
	}
	name := filepath.Join(l.dir, layoutFile)
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("--data: %w", err)
	}
	if err := yaml.UnmarshalWithOptions(data, &l.members, yaml.Strict()); err != nil || len(l.members) == 0 {
		return fmt.Errorf("--data %s: %s is not what dev wrote there; take another directory", l.dir, layoutFile)
	}
	return nil
}

// matches refuses flags that contradict the cluster in the directory. Ports
// that may be any are those it has.
func (l *layout) matches(o Options) error {
	if o.Nodes != len(l.members) {
		return exit.Usagef("--data %s holds a cluster of %d nodes: --nodes %d needs another directory",
			l.dir, len(l.members), o.Nodes)
	}
	first := l.members[0]
	for _, p := range []struct {
		flag string
		base int
		addr string
	}{
		{"--grpc-port", o.GRPCPort, first.GRPC},
		{"--peer-port", o.PeerPort, first.Peer},
		{"--http-port", o.HTTPPort, first.HTTP},
	} {
		_, port, _ := net.SplitHostPort(p.addr)
		if p.base != 0 && strconv.Itoa(p.base) != port {
			return exit.Usagef("--data %s holds a cluster with %s %s, not %d: keep its ports or take another directory",
				l.dir, p.flag, port, p.base)
		}
	}
	return nil
}

// make creates the directory and writes the layout into it.
func (l *layout) make() error {
	if l.dir == "" {
		dir, err := os.MkdirTemp("", "quorlease-dev-")
		if err != nil {
			return fmt.Errorf("make a temporary directory: %w", err)
		}
		l.dir, l.temporary = dir, true
		return nil
	}
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return fmt.Errorf("--data: %w", err)
	}
	out, err := yaml.Marshal(l.members)
	if err != nil {
		return fmt.Errorf("write %s: %w", layoutFile, err)
	}
	head := []byte("# Written by `quorlease dev`. The nodes find one another at these addresses.\n")
	if err := os.WriteFile(filepath.Join(l.dir, layoutFile), bytes.Join([][]byte{head, out}, nil), 0o600); err != nil {
		return fmt.Errorf("--data: %w", err)
	}
	return nil
}

// close removes what was made for this run only.
func (l *layout) close() error {
	if !l.temporary {
		return nil
	}
	if err := os.RemoveAll(l.dir); err != nil {
		return fmt.Errorf("remove the temporary directory: %w", err)
	}
	return nil
}

func newMembers(ctx context.Context, o Options) ([]member, error) {
	members := make([]member, o.Nodes)
	taken := map[int]bool{}
	pick := func(base, i int) (string, error) {
		port := base + i
		if base == 0 {
			free, err := freePort(ctx, taken)
			if err != nil {
				return "", err
			}
			port = free
		}
		return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), nil
	}
	for i := range members {
		m := &members[i]
		m.ID = fmt.Sprintf("n%d", i+1)
		for _, p := range []struct {
			base int
			addr *string
		}{{o.GRPCPort, &m.GRPC}, {o.PeerPort, &m.Peer}, {o.HTTPPort, &m.HTTP}} {
			addr, err := pick(p.base, i)
			if err != nil {
				return nil, err
			}
			*p.addr = addr
		}
	}
	return members, nil
}

// freePort finds a port below those that the system gives to outgoing
// connections, one of which might take it before the node does.
func freePort(ctx context.Context, taken map[int]bool) (int, error) {
	const low, high, tries = 15000, 32000, 1000
	var config net.ListenConfig
	for range tries {
		port := low + rand.IntN(high-low)
		if taken[port] {
			continue
		}
		l, err := config.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue
		}
		taken[port] = true
		return port, l.Close()
	}
	return 0, fmt.Errorf("no free port between %d and %d in %d tries", low, high, tries)
}

// tryPorts opens and closes every listener.
func (l *layout) tryPorts(ctx context.Context) error {
	for _, m := range l.members {
		for _, p := range []struct{ flag, addr string }{
			{"--grpc-port", m.GRPC}, {"--peer-port", m.Peer}, {"--http-port", m.HTTP},
		} {
			listener, err := netaddr.Listen(ctx, p.flag, p.addr)
			if err != nil {
				return fmt.Errorf("%w; does another `quorlease dev` run? %s 0 takes free ports", err, p.flag)
			}
			if err := listener.Close(); err != nil {
				return fmt.Errorf("try %s: %w", p.addr, err)
			}
		}
	}
	return nil
}

func (l *layout) size() int { return len(l.members) }

func (l *layout) endpoints() []string {
	all := make([]string, len(l.members))
	for i, m := range l.members {
		all[i] = m.GRPC
	}
	return all
}

// specs are the child processes: this program, as `serve`.
func (l *layout) specs(o Options) ([]supervise.Spec, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	peers := make([]string, len(l.members))
	for i, m := range l.members {
		peers[i] = m.Peer
	}
	specs := make([]supervise.Spec, len(l.members))
	for i, m := range l.members {
		specs[i] = supervise.Spec{
			Name: m.ID, Path: program, Env: append(environmentOfNode(os.Environ()), o.Environment...),
			Args: []string{
				"quorlease", "serve", "--id", m.ID, "--data", filepath.Join(l.dir, m.ID),
				"--grpc", m.GRPC, "--peer", m.Peer, "--http", m.HTTP,
				"--bootstrap-expect", strconv.Itoa(len(l.members)), "--join", strings.Join(peers, ","),
				"--raft-multiplier", strconv.Itoa(o.RaftMultiplier), "--log-level", o.LogLevel,
			},
		}
	}
	return specs, nil
}

// environmentOfNode leaves out the settings: those in the environment are
// dev's, and a node that took them for its own would be a different one.
func environmentOfNode(all []string) []string {
	kept := make([]string, 0, len(all))
	for _, v := range all {
		if !strings.HasPrefix(v, "QUORLEASE_") {
			kept = append(kept, v)
		}
	}
	return kept
}
