// Package redis keeps token buckets in a Redis server of its own, by a script, as
// many do today.
package redis

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/quorlease/quorlease/bench"
	"github.com/quorlease/quorlease/bench/compare/peer"
	"github.com/quorlease/quorlease/bench/load"
)

// The ways to ask it.
const (
	// Single: one call at a time on a connection of one's own.
	Single peer.Way = "single"
	// Pipelined: calls of many callers travel together on few connections.
	Pipelined peer.Way = "pipelined"
)

// Program is the server.
var Program = peer.Program{
	Name: "redis-server", Files: []string{"redis-server"}, How: "apt-get install redis-server",
}

// Server is one Redis process. It is for one goroutine; its doors are not.
type Server struct {
	config  peer.Config
	durable bool
	address string
	process *bench.Process
}

var _ peer.Keeper = (*Server)(nil)

// Start starts a server that keeps everything in memory.
func Start(ctx context.Context, c peer.Config) (*Server, error) { return start(ctx, c, false) }

// StartDurable starts one that has written and synced what it did before it answers
// (appendfsync always).
func StartDurable(ctx context.Context, c peer.Config) (*Server, error) { return start(ctx, c, true) }

func start(ctx context.Context, c peer.Config, durable bool) (*Server, error) {
	addresses, err := bench.FreePorts(1)
	if err != nil {
		return nil, err
	}
	s := &Server{config: c, durable: durable, address: addresses[0]}
	if err := s.run(ctx); err != nil {
		s.kill()
		return nil, err
	}
	return s, nil
}

// Address is where it listens.
func (s *Server) Address() string { return s.address }

// CPU is its processor time.
func (s *Server) CPU() (time.Duration, error) { return s.process.CPU() }

func (s *Server) run(ctx context.Context) error {
	host, port, err := net.SplitHostPort(s.address)
	if err != nil {
		return fmt.Errorf("start redis-server: %w", err)
	}
	keep := "no"
	if s.durable {
		keep = "yes"
	}
	s.process, err = bench.StartProcess(bench.Program{
		Path: s.config.Programs[Program.Name], Dir: s.config.Dir, Log: s.config.Log,
		Args: []string{
			"--bind", host, "--port", port, "--dir", s.config.Dir, "--save", "", "--loglevel", "warning",
			"--maxclients", strconv.Itoa(2*s.config.Callers + 100), "--appendonly", keep, "--appendfsync", "always",
		},
	})
	if err != nil {
		return err
	}
	return peer.Ready(ctx, "redis-server", s.ping, s.process)
}

func (s *Server) ping(ctx context.Context) error {
	client, err := s.dial(Pipelined)
	if err != nil {
		return err
	}
	defer client.Close()
	// While it reads what it had written it answers with an error.
	return client.Do(ctx, client.B().Ping().Build()).Error()
}

func (s *Server) dial(way peer.Way) (rueidis.Client, error) {
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{s.address}, ForceSingleClient: true, DisableCache: true,
		DisableAutoPipelining: way == Single, BlockingPoolSize: s.config.Callers,
		// What hangs is ended by the caller's context; this is for the connection.
		ConnWriteTimeout: s.config.Timeout, DisableRetry: true,
	})
	if err != nil {
		return nil, fmt.Errorf("connect to redis-server at %s: %w", s.address, err)
	}
	return client, nil
}

// Open connects by one of the ways.
func (s *Server) Open(_ context.Context, way peer.Way, bucket peer.Bucket) (peer.Door, error) {
	if way != Single && way != Pipelined {
		return nil, fmt.Errorf("way %q is none of %s, %s", way, Single, Pipelined)
	}
	client, err := s.dial(way)
	if err != nil {
		return nil, err
	}
	d := &door{
		client: client, script: rueidis.NewLuaScript(script), timeout: s.config.Timeout,
		args: []string{strconv.FormatInt(bucket.PerSecond, 10), strconv.FormatInt(bucket.Burst, 10), "1"},
	}
	for _, key := range bucket.AllKeys() {
		d.keys = append(d.keys, []string{key})
	}
	return d, nil
}

// Crash kills it and starts it again on what it had written.
func (s *Server) Crash(ctx context.Context) error {
	s.kill()
	return s.run(ctx)
}

// Close ends it.
func (s *Server) Close() error {
	s.kill()
	return nil
}

func (s *Server) kill() { peer.Kill(s.process) }

// door is one client. It is every caller's asker.
type door struct {
	client  rueidis.Client
	script  *rueidis.Lua
	timeout time.Duration
	keys    [][]string
	args    []string
}

// Asker is the same for all.
func (d *door) Asker(int) (load.Asker, error) { return d, nil }

// Close ends the connections.
func (d *door) Close() error {
	d.client.Close()
	return nil
}

// Ask runs the script.
func (d *door) Ask(ctx context.Context, key int) (load.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	granted, err := d.script.Exec(ctx, d.client, d.keys[key], d.args).AsInt64()
	return load.Answer{Granted: granted == 1}, err
}
