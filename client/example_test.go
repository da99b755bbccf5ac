package client_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/clienttest"
)

// authority is the client of a process.
var authority *client.Client

// alone is a cluster of one node, in real time, and a client of it.
func alone(limits string) (*client.Client, func(), error) {
	cluster, err := clienttest.New(1)
	if err != nil {
		return nil, nil, err
	}
	if err := cluster.LimitsFile(limits); err != nil {
		return nil, nil, err
	}
	c, err := client.New(client.Config{Endpoints: cluster.Endpoints(), Client: "billing", Dial: cluster.Dial})
	if err != nil {
		return nil, nil, err
	}
	return c, func() { c.Close(); cluster.Close() }, nil
}

// A program that limits itself with golang.org/x/time/rate differs from one that
// shares a limit with all others in three lines: see three_lines_test.go and
// bench/permit/rate_test.go.
func ExampleLimiter() {
	var stop func()
	var err error
	authority, stop, err = alone("limits: [{name: provider, rate: {requests: 100/s}, burst: {requests: 100}}]\n")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()
	if err := callAll(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// call 0
	// call 1
	// call 2
	// call 3
	// call 4
	// call 5
	// call 6
	// call 7
	// call 8
	// call 9
}

func ExampleClient_Acquire() {
	c, stop, err := alone("limits: [{name: provider, rate: {requests: 1/min}, burst: {requests: 1}}]\n")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()
	for range 2 {
		d, err := c.Acquire(context.Background(), client.Request{
			Charges: []client.Charge{{Limit: "provider", Dimension: "requests", Amount: 1}},
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		wait, _ := d.RetryAfter()
		fmt.Println(d.Granted, d.Source, wait > 50*time.Second)
	}
	// Output:
	// true consensus false
	// false consensus true
}

// TestThreeLines compares the two programs, which both compile, with each other
// and with the difference that the documentation shows.
func TestThreeLines(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	before := strings.Split(read("../bench/permit/rate_test.go"), "\n")
	after := strings.Split(read("three_lines_test.go"), "\n")
	if len(before) != len(after) {
		t.Fatalf("%d lines before, %d after", len(before), len(after))
	}
	shown, changed := read("../docs/concepts/permits.md"), 0
	for i := range before {
		if before[i] == after[i] || strings.HasPrefix(before[i], "//") || strings.HasPrefix(before[i], "package ") {
			continue
		}
		changed++
		if lines := fmt.Sprintf("\n-%s\n+%s\n", before[i], after[i]); !strings.Contains(shown, lines) {
			t.Errorf("docs/concepts/permits.md does not show%s", lines)
		}
	}
	if changed != 3 {
		t.Errorf("%d lines differ, want 3", changed)
	}
}

// held is a limiter that holds tokens for as long as a benchmark may take.
func held(tb testing.TB) *client.Limiter {
	tb.Helper()
	c, stop, err := alone("limits: [{name: a, rate: {requests: 1000000000/s}, burst: {requests: 9000000000}}]\n")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(stop)
	l, err := c.Limiter(client.LimiterConfig{Limit: "a"})
	if err != nil {
		tb.Fatal(err)
	}
	if !l.AllowN(10_000_000) {
		tb.Fatal("nothing was granted")
	}
	return l
}

func TestPermitAllocatesNothing(t *testing.T) {
	l := held(t)
	if n := testing.AllocsPerRun(1000, func() { l.Allow() }); n != 0 {
		t.Errorf("Allow allocates %v times, want 0", n)
	}
}

func BenchmarkAllow(b *testing.B) {
	l := held(b)
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			l.Allow()
		}
	})
}
