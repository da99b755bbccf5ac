package behind_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quorlease/quorlease/api/limitsfile"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/bench"
)

// limits of all tests. Each has deployments and clients of its own.
const limits = `
limits:
# They stand for providers, and hear what those answer.
- name: heard
  match: {deployment: "heard-*"}
  per: [deployment]
  target: 90%
  rate: {requests: 10_000/s, tokens: 1_000_000/s, input_tokens: 1_000_000/s, output_tokens: 1_000_000/s}
  burst: {requests: 10_000, tokens: 1_000_000, input_tokens: 1_000_000, output_tokens: 1_000_000}
# And these do not.
- name: deaf
  match: {deployment: "deaf-*"}
  per: [deployment]
  rate: {requests: 10_000/s, tokens: 1_000_000/s, input_tokens: 1_000_000/s, output_tokens: 1_000_000/s}
  burst: {requests: 10_000, tokens: 1_000_000, input_tokens: 1_000_000, output_tokens: 1_000_000}
# One request, and the next one in a minute.
- {name: narrow, match: {deployment: "narrow-*"}, per: [deployment], rate: {requests: 1/min}, burst: {requests: 1}}
- {name: spread, match: {deployment: spread}, rate: {requests: 50/s}, burst: {requests: 25}}
# What is used of it is gone for good.
- name: metered
  match: {deployment: metered}
  exact: true
  rate: {output_tokens: 0/h}
  burst: {output_tokens: 100_000}
retry_budgets: [{name: everybody, match: {client: "*"}}]
`

// nodes are those that all gateways here ask. A test that kills one starts it again, and
// runs alone.
var nodes *bench.Nodes

func TestMain(m *testing.M) {
	// The goroutine that starts processes stays as long as this one.
	goleak.VerifyTestMain(withNodes{m}, goleak.IgnoreTopFunction("github.com/quorlease/quorlease/bench.doPinned"))
}

// withNodes runs tests while three nodes run.
type withNodes struct{ tests *testing.M }

// Run is the exit code.
func (w withNodes) Run() (code int) {
	dir, err := os.MkdirTemp("", "quorlease-behind-")
	if err != nil {
		return complain(err)
	}
	defer os.RemoveAll(dir)
	log, err := os.Create(filepath.Join(dir, "nodes.log"))
	if err != nil {
		return complain(err)
	}
	defer log.Close()
	if err := start(dir, log); err != nil {
		code = complain(err)
	} else {
		code = w.tests.Run()
	}
	if nodes != nil {
		if err := nodes.Close(); err != nil {
			code = complain(err)
		}
	}
	if code != 0 {
		said, _ := os.ReadFile(log.Name())
		fmt.Fprintf(os.Stderr, "the nodes said:\n%s", said)
	}
	return code
}

func complain(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// start has three nodes with the limits.
func start(dir string, log *os.File) (err error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), 3*time.Minute, errors.New("it took 3 minutes"))
	defer cancel()
	binary, err := bench.BuildBinary(ctx, dir)
	if err != nil {
		return err
	}
	if nodes, err = bench.StartNodes(bench.NodesConfig{Binary: binary, Dir: dir, Count: 3, Log: log}); err != nil {
		return err
	}
	if err := nodes.Healthy(ctx); err != nil {
		return err
	}
	request, err := limitsfile.Parse([]byte(limits))
	if err != nil {
		return err
	}
	conn, err := nodes.Conn(0)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := quorleasev1.NewLimitsClient(conn).Apply(ctx, request); err != nil {
		return err
	}
	// A node that has not heard of a limit finds none that fits.
	_, _, err = nodes.SameState(ctx)
	return err
}

// inspect is a key of a limit as the leader knows it.
func inspect(t *testing.T, limit, key string) *quorleasev1.LimitsInspectResponse {
	t.Helper()
	conn, err := nodes.Conn(0)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	state, err := quorleasev1.NewLimitsClient(conn).Inspect(ctx, &quorleasev1.LimitsInspectRequest{Limit: limit, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// pause waits for d, or until the test or ctx ends.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// until waits for a condition, 10 s at most, and says whether it came true.
func until(ctx context.Context, holds func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for !holds() {
		if !pause(ctx, 20*time.Millisecond) {
			return false
		}
	}
	return true
}
