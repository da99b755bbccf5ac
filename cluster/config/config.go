// Package config says how to run a node, and what of it makes no sense.
package config

import (
	"errors"
	"fmt"
	"math"
	"net"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/audit"
	"github.com/quorlease/quorlease/cluster/identity"
	"github.com/quorlease/quorlease/cluster/queue"
	"github.com/quorlease/quorlease/cluster/warn"
	"github.com/quorlease/quorlease/cluster/wire"
)

// Config says how to run a node. Default fills in everything but who the
// node is and where it listens.
type Config struct {
	// ID is the operator's name for the node (`--id`), unique in the cluster.
	// Required.
	ID string
	// DataDir holds everything that must survive. Required; one process at a
	// time.
	DataDir string
	// Peer is where the node listens for other nodes, host:port. Required. Port
	// 0 draws one.
	Peer string
	// AdvertisePeer is the address other nodes dial, a stable name where
	// addresses change (R35). Default: Peer, which then must name a host.
	AdvertisePeer string
	// AdvertiseGRPC and AdvertiseHTTP are replicated for clients to find.
	AdvertiseGRPC, AdvertiseHTTP string
	// Version is the program's version, shown beside the node.
	Version string

	// BootstrapExpect is how many empty nodes form the cluster. 0: this node
	// forms none. 1: it forms one alone.
	BootstrapExpect int
	// Learner: this node forms no cluster and waits until an operator adds it to one.
	Learner bool
	// Join lists peer addresses to form with, or to find the cluster by.
	Join []string

	// RaftMultiplier scales the timers of elections, 500 ms each, and of the
	// leader's check for its majority, 250 ms. 1 to 20; keep it so that 500 ms
	// times it is above four times the worst fsync and round trip (R8).
	RaftMultiplier int
	// SnapshotThreshold is how many entries may pass between two snapshots.
	SnapshotThreshold uint64
	// SnapshotBytes is how many bytes of entries may pass between two snapshots.
	SnapshotBytes int64
	// SnapshotEvery is how long there may be between two snapshots while
	// entries come at all.
	SnapshotEvery time.Duration
	// TrailingLogs is how many entries stay behind a snapshot: a follower that
	// was away for fewer catches up without one (R20).
	TrailingLogs uint64
	// MinFreeBytes is the free space below which the leader proposes nothing
	// more. It keeps voting (R14). Zero: 5 % of the disk, at least 1 GiB where
	// the disk is larger than 20 GiB.
	MinFreeBytes int64

	// MaxPending bounds the operations that wait for an answer, here and for
	// other nodes together.
	MaxPending int
	// MaxWait bounds how long an operation waits for its answer, whatever its caller
	// asks; the time that an acquire may wait in the queue comes on top.
	MaxWait time.Duration
	// MaxQueued bounds the acquires that wait in the queue, here and for other nodes
	// together, MaxQueuedPerClient those of one client.
	MaxQueued, MaxQueuedPerClient int

	// Audit is a file that gets one line of JSON for each decision on an acquire that
	// came in here, and each change of an operator's, off the decision path. Empty:
	// none. AuditBytes is how long it
	// gets before it is renamed, AuditKeep how many old ones stay beside it.
	// AuditSample is how many of the grants are in it, in hundredths of a percent.
	Audit       string
	AuditBytes  int64
	AuditKeep   int
	AuditSample int64

	// TopClients is how many clients metrics name, those that retry most: 0 to 100.
	TopClients int

	// Insecure permits plaintext to and from addresses beyond loopback.
	Insecure bool
	// Caps bound the state of the cluster that this node forms. Nil: the state
	// machine's own defaults.
	Caps *logv1.Caps

	// Logger receives the log. Nil: nothing is logged.
	Logger hclog.Logger
	// Registerer receives the metrics, raft's own too. Those are global in the
	// library: in a process with several nodes they are the last one's. Nil: no
	// metrics.
	Registerer prometheus.Registerer

	// Network carries everything between nodes. Zero: TCP. TLS will be another
	// one, and tests use one in memory.
	Network wire.Network
	// Wall is this node's wall clock, which takes part in deciding calendar windows
	// and nothing else. Nil: the machine's. Tests inject theirs.
	Wall func() time.Time
	// Elapsed is this node's own clock, from any moment on, never backwards.
	// Nil: the machine's boot-time clock. Tests inject theirs.
	Elapsed func() time.Duration
}

// Default returns the defaults. ID, DataDir and Peer are left to the
// caller.
func Default() Config {
	return Config{
		RaftMultiplier:    1,
		SnapshotThreshold: 8192,
		SnapshotBytes:     256 << 20,
		SnapshotEvery:     time.Hour,
		TrailingLogs:      20480,
		MaxPending:        16384,
		MaxWait:           10 * time.Second,

		MaxQueued: 100_000, MaxQueuedPerClient: 20_000,

		AuditBytes: 64 << 20, AuditKeep: 4, AuditSample: audit.Whole,

		TopClients: 10,
	}
}

// QueueBounds bound the waiting queue.
func (c *Config) QueueBounds() queue.Config {
	return queue.Config{Max: c.MaxQueued, ClientMax: c.MaxQueuedPerClient}
}

// Validate reports every problem, each with the flag, the value and the bound.
func (c *Config) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if err := identity.CheckName(c.ID); err != nil {
		bad("--id: %w", err)
	}
	if c.DataDir == "" {
		bad("--data is empty: name a directory")
	}
	errs = append(errs, c.validateAddresses()...)
	if c.BootstrapExpect < 0 || c.BootstrapExpect > expectMax {
		bad("--bootstrap-expect %d: must be 0 to %d", c.BootstrapExpect, expectMax)
	}
	if c.BootstrapExpect > 1 && len(c.Join) == 0 {
		bad("--bootstrap-expect %d needs --join with the peer addresses of the others", c.BootstrapExpect)
	}
	if c.Learner && c.BootstrapExpect > 0 {
		bad("--learner joins a cluster that exists, --bootstrap-expect %d forms one: name one of them", c.BootstrapExpect)
	}
	if c.Learner && len(c.Join) == 0 {
		bad("--learner needs --join with the peer addresses of some members")
	}
	if c.RaftMultiplier < 1 || c.RaftMultiplier > multiplierMax {
		bad("--raft-multiplier %d: must be 1 to %d", c.RaftMultiplier, multiplierMax)
	}
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"--snapshot-threshold", int64(min(c.SnapshotThreshold, math.MaxInt64))},
		{"SnapshotBytes", c.SnapshotBytes},
		{"SnapshotEvery", int64(c.SnapshotEvery)},
		{"--trailing-logs", int64(min(c.TrailingLogs, math.MaxInt64))},
		{"MaxPending", int64(c.MaxPending)},
		{"MaxWait", int64(c.MaxWait)},
		{"MaxQueued", int64(c.MaxQueued)},
		{"MaxQueuedPerClient", int64(c.MaxQueuedPerClient)},
		{"--audit-bytes", c.AuditBytes},
		{"--audit-keep", int64(c.AuditKeep)},
	} {
		if f.value < 1 {
			bad("%s %d: must be at least 1", f.name, f.value)
		}
	}
	if c.AuditSample < 0 || c.AuditSample > audit.Whole {
		bad("--audit-sample %d: must be 0 to %d hundredths of a percent", c.AuditSample, audit.Whole)
	}
	if c.TopClients < 0 || c.TopClients > warn.OffendersMax {
		bad("--top-clients %d: must be 0 to %d", c.TopClients, warn.OffendersMax)
	}
	if c.MinFreeBytes < 0 {
		bad("--min-free-bytes %d: must not be negative", c.MinFreeBytes)
	}
	return errors.Join(errs...)
}

const (
	// expectMax keeps a slip of the keyboard from waiting for hundreds.
	expectMax = 9
	// multiplierMax makes an election take some 20 s, more than any network
	// needs.
	multiplierMax = 20
)

func (c *Config) validateAddresses() []error {
	var errs []error
	if err := checkAddress("--peer", c.Peer); err != nil {
		errs = append(errs, err)
	} else if host, _, _ := net.SplitHostPort(c.Peer); !c.Insecure && !isLoopback(host) {
		errs = append(errs, fmt.Errorf("--peer %s listens beyond loopback in plain text: needs --insecure", c.Peer))
	}
	if c.AdvertisePeer != "" {
		errs = append(errs, checkAdvertised("--advertise-peer", c.AdvertisePeer))
	} else if host, _, err := net.SplitHostPort(c.Peer); err == nil && isUnspecified(host) {
		errs = append(errs, fmt.Errorf("--peer %s names no host that others can dial: needs --advertise-peer", c.Peer))
	}
	for _, a := range c.Join {
		errs = append(errs, checkAdvertised("--join", a))
	}
	return errs
}

func checkAddress(flag, address string) error {
	if _, port, err := net.SplitHostPort(address); err != nil || port == "" {
		return fmt.Errorf("%s %q: must be host:port", flag, address)
	}
	return nil
}

func checkAdvertised(flag, address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil || port == "" || port == "0" || isUnspecified(host) {
		return fmt.Errorf("%s %q: must be host:port that others can dial", flag, address)
	}
	return nil
}

func isUnspecified(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || ip != nil && ip.IsUnspecified()
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// Advertised is the peer address that others dial, once bound is known.
func (c *Config) Advertised(bound net.Addr) string {
	if c.AdvertisePeer != "" {
		return c.AdvertisePeer
	}
	host, port, _ := net.SplitHostPort(c.Peer)
	if port != "0" {
		return c.Peer
	}
	_, drawn, err := net.SplitHostPort(bound.String())
	if err != nil {
		return bound.String()
	}
	return net.JoinHostPort(host, drawn)
}
