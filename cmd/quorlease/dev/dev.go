// Package dev runs a whole cluster on one machine for those who try it out or
// develop against it: one child process a node, so that each can be killed.
package dev

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/quorlease/quorlease/api/limitsfile"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/cmd/quorlease/ask"
	"github.com/quorlease/quorlease/cmd/quorlease/exit"
	"github.com/quorlease/quorlease/cmd/quorlease/supervise"
)

// sampleLimits are applied where a cluster has none and no file was named.
//
//go:embed sample.yaml
var sampleLimits []byte

// Options of a development cluster.
type Options struct {
	// Nodes is how many, 1 to 9.
	Nodes int
	// Data is the directory for the nodes' data. Empty: a temporary one, removed
	// at the end.
	Data string
	// Limits are applied once there is a leader. Nil: a sample, where there are
	// none.
	Limits *quorleasev1.LimitsApplyRequest
	// Restart starts a node again that has ended.
	Restart bool
	// GRPCPort, PeerPort and HTTPPort are the first node's; node i has i−1 more.
	// 0: free ones.
	GRPCPort, PeerPort, HTTPPort int
	// RaftMultiplier and LogLevel are passed on to the nodes.
	RaftMultiplier int
	LogLevel       string
	// Environment are settings that are passed on as they are, as name=value.
	Environment []string
	// Endpoints are those that the command line asks when it is told none: with
	// these the commands to type next need no --endpoints.
	Endpoints []string
	// Stdout gets what to type next, Stderr what happens and what the nodes log.
	Stdout, Stderr io.Writer
}

const (
	// mostNodes bounds --nodes: more voters than that only cost.
	mostNodes = 9
	// readyPatience is how long dev waits for a leader.
	readyPatience = 30 * time.Second
	// stopGrace is how long the nodes have to stop before they are killed.
	stopGrace = 8 * time.Second
	// patience is how long one question to the nodes may take.
	patience = 2 * time.Second
	// pollPause lies between two looks at the cluster while waiting for it.
	pollPause = 100 * time.Millisecond
)

// Check refuses what is out of bounds, naming the flag.
func (o *Options) Check() error {
	if o.Nodes < 1 || o.Nodes > mostNodes {
		return exit.Usagef("--nodes %d is outside 1 to %d", o.Nodes, mostNodes)
	}
	for _, p := range []struct {
		flag string
		base int
	}{{"--grpc-port", o.GRPCPort}, {"--peer-port", o.PeerPort}, {"--http-port", o.HTTPPort}} {
		if last := 65536 - o.Nodes; p.base < 0 || p.base > last {
			return exit.Usagef("%s %d is outside 0 to %d for %d nodes", p.flag, p.base, last, o.Nodes)
		}
	}
	return nil
}

// Run runs the cluster until the context ends, which is no error, or no node is
// left.
func Run(ctx context.Context, o Options) (err error) {
	ctx, stop := dieWithGoRun(ctx)
	defer stop()
	l, err := newLayout(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	specs, err := l.specs(o)
	if err != nil {
		return err
	}
	group, err := supervise.Start(groupConfig(o), specs) //nolint:contextcheck // Close stops the children, in order
	if err != nil {
		return err
	}
	defer group.Close()
	nodes, err := ask.Connect(l.endpoints(), patience)
	if err != nil {
		return err
	}
	defer nodes.Close()
	d := &development{options: o, layout: l, group: group, nodes: nodes}
	if err := d.begin(ctx); err != nil {
		// An interrupted start is a stop like any other.
		if ctx.Err() != nil {
			return nil
		}
		return ask.Explain(err)
	}
	return d.watch(ctx)
}

func groupConfig(o Options) supervise.Config {
	config := supervise.Config{
		Output: o.Stderr, Grace: stopGrace,
		// Who asks for a detailed log gets all of it.
		MuteStop: quiet(o.LogLevel), Similar: similarPause(o.LogLevel),
		FirstPause: 500 * time.Millisecond, LongestPause: 10 * time.Second,
	}
	if o.Restart {
		// A node that was removed would only be refused again, and a command
		// line that was wrong stays wrong.
		config.Restart = func(code int) bool { return code != exit.Removed && code != exit.Usage }
	}
	return config
}

// quiet says whether only trouble is logged. What a cluster logs while all of it
// stops is none, and what repeats in the same words is said once in a while.
func quiet(level string) bool { return level == "warn" || level == "error" || level == "off" }

func similarPause(level string) time.Duration {
	if quiet(level) {
		return 5 * time.Second
	}
	return 0
}

// development is a running cluster.
type development struct {
	options Options
	layout  *layout
	group   *supervise.Group
	nodes   *ask.Nodes
	// leader is the one that was told last.
	leader string
	// removed is how many nodes were removed from the cluster: they don't come back.
	removed int
}

// size is how many nodes there are to be.
func (d *development) size() int { return d.layout.size() - d.removed }

// begin waits for a leader, applies the limits and says what to type next.
func (d *development) begin(ctx context.Context) error {
	var err error
	if d.leader, err = d.awaitLeader(ctx); err != nil {
		return err
	}
	if err := d.applyLimits(ctx); err != nil {
		return err
	}
	return d.banner(ctx, d.leader)
}

// status asks any node that answers.
func (d *development) status(ctx context.Context) (*quorleasev1.ClusterStatusResponse, error) {
	return ask.Answer(ctx, d.nodes, ask.Read, ask.CallOf(
		quorleasev1.NewClusterClient, quorleasev1.ClusterClient.Status, &quorleasev1.ClusterStatusRequest{}))
}

// errNodeEnded says that a node ended before the cluster was ready.
var errNodeEnded = errors.New("a node ended while the cluster was starting")

// awaitLeader polls until a leader is known that is not one of those that
// ended, and every node has told its addresses.
func (d *development) awaitLeader(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, readyPatience)
	defer cancel()
	for {
		if s, err := d.status(ctx); err == nil && d.complete(s) {
			return s.GetLeader(), nil
		}
		select {
		case e := <-d.group.Events():
			switch {
			case !e.Started && e.Code == exit.Removed && d.size() > 1:
				d.tellEnded(e)
			case !e.Started && e.RestartIn == 0:
				return "", fmt.Errorf("%w: %s: %s", errNodeEnded, e.Name, ended(e))
			}
		case <-time.After(pollPause):
		case <-ctx.Done():
			return "", fmt.Errorf("no leader within %s: the nodes' log lines above say why", readyPatience)
		}
	}
}

// complete says whether there is a leader among those that run, and every node
// can be found.
func (d *development) complete(s *quorleasev1.ClusterStatusResponse) bool {
	found := 0
	for _, n := range s.GetNodes() {
		if n.GetGrpc() != "" && n.GetHttp() != "" {
			found++
		}
	}
	return s.GetLeader() != "" && d.group.PID(s.GetLeader()) != 0 && found >= d.size()
}

// ended says how a child ended, in its own words where it had some.
func ended(e supervise.Event) string {
	if own, ok := strings.CutPrefix(e.LastLine, "quorlease: "); ok {
		return own
	}
	return e.Cause
}

// applyLimits applies the file that was named; the sample only where there is
// nothing.
func (d *development) applyLimits(ctx context.Context) error {
	request := d.options.Limits
	if request == nil {
		now, err := d.listLimits(ctx)
		if err != nil {
			return err
		}
		if len(now.GetLimits())+len(now.GetRetryBudgets()) > 0 {
			return nil
		}
		if request, err = limitsfile.ParseNamed("sample.yaml", sampleLimits); err != nil {
			return err
		}
	}
	// The same file twice is the same as once.
	_, err := ask.Answer(ctx, d.nodes, ask.Repeatable,
		ask.CallOf(quorleasev1.NewLimitsClient, quorleasev1.LimitsClient.Apply, request))
	return err
}

func (d *development) listLimits(ctx context.Context) (*quorleasev1.LimitsListResponse, error) {
	return ask.Answer(ctx, d.nodes, ask.Read, ask.CallOf(
		quorleasev1.NewLimitsClient, quorleasev1.LimitsClient.List, &quorleasev1.LimitsListRequest{}))
}

// watch says what becomes of the nodes until the context ends or none is left.
func (d *development) watch(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			d.say("stopping")
			return nil
		case e := <-d.group.Events():
			if e.Started {
				d.say("%s runs again (pid %d)", e.Name, e.PID)
				continue
			}
			d.tellEnded(e)
			if d.group.Running() == 0 && !d.options.Restart {
				return fmt.Errorf("no node is left")
			}
			d.tellLeader(ctx)
		}
	}
}

// tellEnded says that a node has ended and how it comes back, if it does.
func (d *development) tellEnded(e supervise.Event) {
	if e.Code == exit.Removed {
		d.removed++
	}
	d.say("%s (pid %d) ended: %s; %s", e.Name, e.PID, ended(e), outlook(e, d.group.Running(), d.size()))
}

// outlook is what comes next after a node has ended, of which so many of all run.
func outlook(e supervise.Event, running, all int) string {
	left := fmt.Sprintf("%d of %d nodes are left", running, all)
	switch {
	case e.RestartIn > 0:
		return fmt.Sprintf("starting it again in %s", e.RestartIn)
	case e.Code == exit.Removed:
		return left
	}
	return left + " (--restart would bring it back)"
}

// tellLeader waits for the answer to the question that everybody has next.
func (d *development) tellLeader(ctx context.Context) {
	since := time.Now()
	if 2*d.group.Running() <= d.size() {
		d.say("that is no majority: nothing is granted until a node comes back")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, readyPatience)
	defer cancel()
	for ctx.Err() == nil {
		if s, err := d.status(ctx); err == nil && s.GetLeader() != "" && d.group.PID(s.GetLeader()) != 0 {
			if s.GetLeader() == d.leader {
				d.say("%s still leads", d.leader)
				return
			}
			d.leader = s.GetLeader()
			d.say("%s leads (after %s)", d.leader, time.Since(since).Round(10*time.Millisecond))
			return
		}
		select {
		case <-time.After(pollPause):
		case <-ctx.Done():
		}
	}
}

// say tells the person at the terminal something. It is no answer, so it goes
// beside the log.
func (d *development) say(format string, args ...any) {
	fmt.Fprintf(d.options.Stderr, "dev | %s\n", exit.OneLine(fmt.Sprintf(format, args...)))
}

// underGoRun says whether `go run` started this process: its programs live in
// a build directory.
func underGoRun(executable string) bool {
	return strings.Contains(executable, string(os.PathSeparator)+"go-build")
}

// dieWithGoRun ends the context when the `go run` that started this process
// has ended. It passes no signal on but Ctrl-C, and would leave the cluster
// running otherwise.
func dieWithGoRun(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	executable, err := os.Executable()
	if err != nil || !underGoRun(executable) {
		return ctx, cancel
	}
	starter := os.Getppid()
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if os.Getppid() != starter {
					cancel()
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func() {
		cancel()
		<-done
	}
}
