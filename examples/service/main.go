// Command service is a service whose calls to a provider are limited by
// Quorlease. It goes on when the authority is lost, says so once, and says once
// that it is over.
//
//	go run ./examples/service --limit demo --rate 100 --for 30s
//
// Each call asks for one token of requests. At the end it prints what it counted
// itself, to be compared with what the authority has booked (quorlease inspect).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/quorlease/quorlease/client"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "service:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, log io.Writer) error {
	flags := flag.NewFlagSet("service", flag.ContinueOnError)
	flags.SetOutput(log)
	endpoints := flags.String("endpoints", "127.0.0.1:7101,127.0.0.1:7102,127.0.0.1:7103", "addresses of `nodes`")
	name := flags.String("client", "service", "who the work is for")
	limit := flags.String("limit", "demo", "the limit to charge")
	rate := flags.Int("rate", 100, "calls a second")
	length := flags.Duration("for", 30*time.Second, "how long to go on")
	deadline := flags.Duration("deadline", 150*time.Millisecond, "within what time a call is decided")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	if *rate < 1 || *rate > 10_000 {
		return fmt.Errorf("rate: %d is out of range 1..10000", *rate)
	}
	c, err := client.New(client.Config{
		Endpoints: strings.Split(*endpoints, ","), Client: *name, Deadline: *deadline,
		Logger: slog.New(slog.NewTextHandler(log, nil)), CloseWithin: 10 * time.Second,
	})
	if err != nil {
		return err
	}
	defer c.Close()
	s := &service{client: c, limit: *limit}
	s.serve(ctx, *rate, *length)
	// What was admitted without the authority is reported before the end.
	if err := c.Close(); err != nil {
		return err
	}
	fmt.Fprintln(out, s.String())
	return nil
}

// service counts what became of its calls.
type service struct {
	client *client.Client
	limit  string

	calls, granted, denied, local, failed atomic.Int64
	// slowest is the longest that a call waited for its decision.
	slowest atomic.Int64
}

// serve makes calls at a fixed rate, whatever becomes of them.
func (s *service) serve(ctx context.Context, rate int, length time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	ticker := time.NewTicker(time.Second / time.Duration(rate))
	defer ticker.Stop()
	var calls sync.WaitGroup
	defer calls.Wait()
	for {
		select {
		case <-ticker.C:
			calls.Go(s.call)
		case <-ctx.Done():
			return
		}
	}
}

// call is one call: it goes to the provider if the limit allows it.
func (s *service) call() {
	start := time.Now()
	decision, err := s.client.Acquire(context.Background(), client.Request{
		Charges: []client.Charge{{Limit: s.limit, Dimension: "requests", Amount: 1}},
	})
	s.calls.Add(1)
	for took := int64(time.Since(start)); ; {
		slowest := s.slowest.Load()
		if took <= slowest || s.slowest.CompareAndSwap(slowest, took) {
			break
		}
	}
	switch {
	case err != nil:
		s.failed.Add(1)
	case !decision.Granted:
		s.denied.Add(1)
	default:
		s.granted.Add(1)
		if decision.Source == client.Local {
			s.local.Add(1)
		}
	}
}

// String is the last line of the service.
func (s *service) String() string {
	return fmt.Sprintf("calls=%d granted=%d denied=%d failed=%d local=%d slowest=%s",
		s.calls.Load(), s.granted.Load(), s.denied.Load(), s.failed.Load(), s.local.Load(),
		time.Duration(s.slowest.Load()).Round(time.Millisecond))
}
