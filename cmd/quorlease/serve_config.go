package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quorlease/quorlease/api/server"
	"github.com/quorlease/quorlease/cluster"
	"github.com/quorlease/quorlease/cmd/quorlease/alarm"
	"github.com/quorlease/quorlease/cmd/quorlease/exit"
	"github.com/quorlease/quorlease/cmd/quorlease/netaddr"
	"github.com/quorlease/quorlease/cmd/quorlease/setting"
)

// serveOptions are the settings of one node. Their names are those of the
// flags; see settings.go.
type serveOptions struct {
	node cluster.Config

	grpc, http string
	log        logOptions
	grace      time.Duration
	alerts     alarm.Targets
	config     string
}

// define is the one table of a node's settings.
func (o *serveOptions) define(flags *pflag.FlagSet) {
	o.node = cluster.DefaultConfig()
	n := &o.node
	flags.StringVar(&n.ID, "id", "", "the `name` of the node, its own in the cluster; required")
	flags.StringVar(&n.DataDir, "data", "", "the `directory` for everything that must survive; required")
	flags.StringVar(&o.grpc, "grpc", "127.0.0.1:7101", "`address` to listen on for clients")
	flags.StringVar(&n.Peer, "peer", "127.0.0.1:7201", "`address` to listen on for other nodes")
	flags.StringVar(&o.http, "http", "127.0.0.1:7301", "`address` to listen on for HTTP: JSON, health, metrics")
	flags.StringVar(&n.AdvertiseGRPC, "advertise-grpc", "", "`address` at which clients find --grpc; else the same")
	flags.StringVar(&n.AdvertisePeer, "advertise-peer", "", "`address` at which nodes find --peer; else the same")
	flags.StringVar(&n.AdvertiseHTTP, "advertise-http", "", "`address` at which HTTP clients find --http; else the same")
	flags.IntVar(&n.BootstrapExpect, "bootstrap-expect", 0,
		"how `many` empty nodes form the cluster together; 0 forms none, 1 needs no --join")
	flags.StringSliceVar(&n.Join, "join", nil, "peer `addresses` of the nodes to form with, or to find the cluster by")
	flags.BoolVar(&n.Learner, "learner", false,
		"form no cluster: wait until an operator adds this node to the one that --join leads to")
	flags.BoolVar(&n.Insecure, "insecure", false, "accept plaintext beyond loopback")
	flags.IntVar(&n.RaftMultiplier, "raft-multiplier", n.RaftMultiplier,
		"scale the election timers (500/500/250 ms) by this `number`, 1 to 20")
	flags.Uint64Var(&n.SnapshotThreshold, "snapshot-threshold", n.SnapshotThreshold,
		"how `many` log entries lie between two snapshots at most")
	flags.Uint64Var(&n.TrailingLogs, "trailing-logs", n.TrailingLogs,
		"how `many` log entries stay behind a snapshot, for followers that were away")
	flags.Int64Var(&n.MinFreeBytes, "min-free-bytes", n.MinFreeBytes,
		"free `bytes` of the disk below which nothing more is proposed; 0 is 5 %, at least 1 GiB on a large disk")
	flags.DurationVar(&o.grace, "session-grace", server.DefaultConfig().SessionGrace,
		"how long the slots of a client's session stay taken when it has ended")
	flags.StringVar(&n.Audit, "audit", "",
		"a `file` that gets one line of JSON for each decision on an acquire that came in here and each change; none without")
	setting.Percent(flags, &n.AuditSample, "audit-sample",
		"how many of the grants are in it, `N%`; denials and changes always are")
	flags.Int64Var(&n.AuditBytes, "audit-bytes", n.AuditBytes, "rename the audit file before it has more `bytes`")
	flags.IntVar(&n.AuditKeep, "audit-keep", n.AuditKeep, "how `many` renamed audit files stay: FILE.1 is the newest")
	flags.IntVar(&n.TopClients, "top-clients", n.TopClients,
		"how `many` clients the metrics name, those that retry most; 0 names none")
	o.log.define(flags)
	o.alerts.Define(flags)
	flags.StringVar(&o.config, "config", "", "YAML `file` with these settings, by the names of the flags")
	setting.FromEnvironment(flags)
	setting.Range(flags, "bootstrap-expect", "0 to 9")
	setting.Range(flags, "raft-multiplier", "1 to 20")
	setting.Range(flags, "snapshot-threshold", "1 up")
	setting.Range(flags, "trailing-logs", "1 up")
	setting.Range(flags, "min-free-bytes", "0 up")
	setting.Range(flags, "session-grace", "0s to 1h")
	setting.Range(flags, "audit-bytes", "1 up")
	setting.Range(flags, "audit-keep", "1 up")
	setting.Range(flags, "top-clients", "0 to 100")
}

// complete fills in what the command line did not say and checks everything
// that can be checked before anything is opened. It reports every problem.
func (o *serveOptions) complete(ctx context.Context, cmd *cobra.Command) error {
	if o.config != "" {
		data, err := os.ReadFile(o.config)
		if err != nil {
			return exit.Usagef("--config: %w", err)
		}
		if err := setting.File(cmd.LocalNonPersistentFlags(), o.config, data); err != nil {
			return err
		}
	}
	var errs []error
	if o.grace < 0 || o.grace > time.Hour {
		errs = append(errs, exit.Usagef("--session-grace %v is outside 0s to 1h", o.grace))
	}
	if o.node.ID == "" {
		errs = append(errs, exit.Usagef("--id is missing: name this node, n1 for example"))
	}
	if o.node.DataDir == "" {
		errs = append(errs, exit.Usagef("--data is missing: name a directory for this node alone"))
	}
	for _, l := range []struct{ flag, addr, advertise string }{
		{"--grpc", o.grpc, o.node.AdvertiseGRPC},
		{"--peer", o.node.Peer, o.node.AdvertisePeer},
		{"--http", o.http, o.node.AdvertiseHTTP},
	} {
		errs = append(errs, o.checkListener(ctx, l.flag, l.addr, l.advertise))
	}
	_, err := o.log.parse()
	_, badTarget := o.alerts.Sinks()
	if errs = append(errs, err, badTarget); errors.Join(errs...) == nil {
		errs = append(errs, o.node.Validate())
	}
	if err := errors.Join(errs...); err != nil {
		return &exit.Error{Code: exit.Usage, Err: err}
	}
	return nil
}

// checkListener checks where a node listens and what it tells others of it.
func (o *serveOptions) checkListener(ctx context.Context, flag, addr, advertise string) error {
	if err := netaddr.Check(flag, addr); err != nil {
		return err
	}
	if !o.node.Insecure {
		if err := netaddr.CheckLoopback(ctx, flag, addr); err != nil {
			return err
		}
	}
	told := "--advertise-" + strings.TrimPrefix(flag, "--")
	if advertise == "" && netaddr.Unspecified(addr) {
		return exit.Usagef("%s %s is every interface, and nobody can dial that: say with %s where others find it",
			flag, addr, told)
	}
	if advertise != "" {
		return netaddr.Check(told, advertise)
	}
	return nil
}

// logOptions say what is logged, and how.
type logOptions struct {
	level string
	json  bool
}

func (o *logOptions) define(flags *pflag.FlagSet) {
	flags.StringVar(&o.level, "log-level", "info", "what to log: trace, debug, info, warn or error")
	flags.BoolVar(&o.json, "log-json", false, "log one JSON object a line")
}

func (o *logOptions) parse() (hclog.Level, error) {
	level := hclog.LevelFromString(o.level)
	if level == hclog.NoLevel {
		return level, exit.Usagef("--log-level %q is none of trace, debug, info, warn, error", o.level)
	}
	return level, nil
}

func (o *logOptions) logger(a *app) (hclog.Logger, error) {
	level, err := o.parse()
	if err != nil {
		return nil, err
	}
	return hclog.New(&hclog.LoggerOptions{
		Name: "quorlease", Level: level, Output: a.stderr, JSONFormat: o.json,
	}), nil
}

// exitCodeOf turns the reason why a node could not start, or stopped itself,
// into the exit code that tells a supervisor what to do.
func exitCodeOf(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, cluster.ErrRemoved):
		return &exit.Error{Code: exit.Removed, Err: fmt.Errorf("%w; it stays out with this data directory", err)}
	case errors.Is(err, cluster.ErrProtected):
		return &exit.Error{Code: exit.Protected, Err: err}
	default:
		return err
	}
}
