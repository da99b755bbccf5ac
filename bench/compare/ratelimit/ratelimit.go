// Package ratelimit runs envoyproxy/ratelimit in front of a Redis server, as Envoy's
// users do, without its statistics.
package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/quorlease/quorlease/bench"
	"github.com/quorlease/quorlease/bench/compare/peer"
	"github.com/quorlease/quorlease/bench/compare/redis"
	"github.com/quorlease/quorlease/bench/compare/wire"
	"github.com/quorlease/quorlease/bench/load"
)

// Unary is the only way to ask it: one call a decision.
const Unary peer.Way = "unary"

// Program is the service. It needs Redis beside it.
var Program = peer.Program{
	Name: "ratelimit", Files: []string{"ratelimit", "service_cmd"},
	How: "go install github.com/envoyproxy/ratelimit/src/service_cmd@v1.4.1-0.20260122083618-3fb702589d36",
}

// domain is that of all its limits.
const domain = "bench"

// Service is the process and its Redis. It is for one goroutine; its doors are not.
type Service struct {
	config  peer.Config
	redis   *redis.Server
	process *bench.Process
	// grpc, http and debug are its addresses.
	grpc, http, debug string
}

var _ peer.Keeper = (*Service)(nil)

// Start starts both.
func Start(ctx context.Context, c peer.Config) (*Service, error) {
	addresses, err := bench.FreePorts(3)
	if err != nil {
		return nil, err
	}
	s := &Service{config: c, grpc: addresses[0], http: addresses[1], debug: addresses[2]}
	if err := s.configure(); err != nil {
		return nil, err
	}
	behind := c
	// Its pool of connections and what asks whether it is there.
	behind.Callers = poolSize
	if s.redis, err = redis.Start(ctx, behind); err != nil {
		return nil, err
	}
	if err := s.run(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// poolSize is how many connections it has to Redis. More gain little, fewer lose.
const poolSize = 64

// configure writes the limits. A window is a day: none ends while it is measured.
func (s *Service) configure() error {
	var text strings.Builder
	fmt.Fprintf(&text, "domain: %s\ndescriptors:\n", domain)
	for _, b := range s.config.Buckets {
		fmt.Fprintf(&text, "  - key: %s\n    rate_limit: {unit: day, requests_per_unit: %d}\n", b.Name, b.Burst)
	}
	dir := filepath.Join(s.config.Dir, "limits", "config")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("configure ratelimit: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "limits.yaml"), []byte(text.String()), 0o600); err != nil {
		return fmt.Errorf("configure ratelimit: %w", err)
	}
	return nil
}

func (s *Service) run(ctx context.Context) error {
	env := []string{
		"RUNTIME_ROOT=" + s.config.Dir, "RUNTIME_SUBDIRECTORY=limits", "RUNTIME_WATCH_ROOT=false",
		"REDIS_SOCKET_TYPE=tcp", "REDIS_URL=" + s.redis.Address(), fmt.Sprintf("REDIS_POOL_SIZE=%d", poolSize),
		"DISABLE_STATS=true", "USE_STATSD=false", "LOG_LEVEL=error", "BACKEND_TYPE=redis",
	}
	for _, one := range []struct{ name, address string }{{"GRPC_", s.grpc}, {"", s.http}, {"DEBUG_", s.debug}} {
		host, port, err := net.SplitHostPort(one.address)
		if err != nil {
			return fmt.Errorf("start ratelimit: %w", err)
		}
		env = append(env, one.name+"HOST="+host, one.name+"PORT="+port)
	}
	var err error
	s.process, err = bench.StartProcess(bench.Program{
		Path: s.config.Programs[Program.Name], Dir: s.config.Dir, Env: env, Log: s.config.Log,
	})
	if err != nil {
		return err
	}
	return peer.Ready(ctx, "ratelimit", s.answers, s.process)
}

// answers asks for something that has no limit.
func (s *Service) answers(ctx context.Context) error {
	conn, err := bench.Dial(s.grpc)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = ask(ctx, conn, request("ready", "ready"))
	return err
}

// CPU is that of both.
func (s *Service) CPU() (time.Duration, error) {
	own, err := s.process.CPU()
	if err != nil {
		return 0, err
	}
	behind, err := s.redis.CPU()
	return own + behind, err
}

// Open connects.
func (s *Service) Open(_ context.Context, way peer.Way, bucket peer.Bucket) (peer.Door, error) {
	if way != Unary {
		return nil, fmt.Errorf("way %q is not %s", way, Unary)
	}
	conn, err := bench.Dial(s.grpc)
	if err != nil {
		return nil, err
	}
	d := &door{conn: conn, timeout: s.config.Timeout}
	for _, key := range bucket.AllKeys() {
		d.requests = append(d.requests, request(bucket.Name, key))
	}
	return d, nil
}

// Crash kills both and starts them again.
func (s *Service) Crash(ctx context.Context) error {
	peer.Kill(s.process)
	if err := s.redis.Crash(ctx); err != nil {
		return err
	}
	return s.run(ctx)
}

// Close ends both.
func (s *Service) Close() error {
	peer.Kill(s.process)
	return s.redis.Close()
}

// The fields of a request and its answer that are used.
const (
	requestDomain, requestDescriptor = 1, 2
	descriptorEntry                  = 1
	entryKey, entryValue             = 1, 2
	answerCode                       = 1
	codeOK                           = 1
)

func request(key, value string) wire.Message {
	entry := wire.Message(nil).Text(entryKey, key).Text(entryValue, value)
	descriptor := wire.Message(nil).Bytes(descriptorEntry, entry)
	return wire.Message(nil).Text(requestDomain, domain).Bytes(requestDescriptor, descriptor)
}

func ask(ctx context.Context, conn *grpc.ClientConn, request wire.Message) (granted bool, err error) {
	answer, err := wire.Call(ctx, conn, "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit", request)
	if err != nil {
		return false, err
	}
	code, err := answer.First(answerCode)
	return code.Value == codeOK, err
}

// door is one connection. It is every caller's asker.
type door struct {
	conn     *grpc.ClientConn
	requests []wire.Message
	timeout  time.Duration
}

// Asker is the same for all.
func (d *door) Asker(int) (load.Asker, error) { return d, nil }

// Close ends the connection.
func (d *door) Close() error { return d.conn.Close() }

// Ask asks for one token.
func (d *door) Ask(ctx context.Context, key int) (load.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	granted, err := ask(ctx, d.conn, d.requests[key])
	return load.Answer{Granted: granted}, err
}
