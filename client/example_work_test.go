package client_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/quorlease/quorlease/client"
)

const works = `
limits:
- {name: provider, rate: {requests: 20/s}, burst: {requests: 1}}
- name: deployment
  match: {deployment: "gpt-*"}
  per: [deployment]
  rate: {requests: 300/min, input_tokens: 400_000/min}
- {name: team, match: {team: "*"}, per: [team], rate: {requests: 600/min}}
`

func ExampleClient_Acquire_wait() {
	c, stop, err := alone(works)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()
	ctx := context.Background()
	for range 2 {
		d, err := c.Acquire(ctx, client.Request{
			Charges: []client.Charge{{Limit: "provider", Dimension: "requests", Amount: 1}},
			MaxWait: 30 * time.Second,
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(d.Granted, d.Queue.Position, d.Queue.Waited > 0)
	}
	// Output:
	// true 0 false
	// true 1 true
}

func ExampleClient_Acquire_attributes() {
	c, stop, err := alone(works)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()
	ctx := context.Background()
	d, err := c.Acquire(ctx, client.Request{
		Attributes: map[string]string{"deployment": "gpt-4o", "team": "red"},
		Amounts:    map[string]int64{"input_tokens": 900},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, charge := range d.Lease.Charges {
		fmt.Println(charge.Limit, charge.Key, charge.Dimension, charge.Amount)
	}
	// Unordered output:
	// deployment gpt-4o requests 1
	// deployment gpt-4o input_tokens 900
	// team red requests 1
}

// TestPagesShowWhatCompiles: what the pages show is in the examples above.
func TestPagesShowWhatCompiles(t *testing.T) {
	t.Parallel()
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	lines := make(map[string]bool)
	for line := range strings.Lines(read("example_work_test.go")) {
		lines[strings.TrimSpace(line)] = true
	}
	for _, page := range []string{"waiting", "attributes"} {
		_, after, found := strings.Cut(read("../docs/concepts/"+page+".md"), "```go\n")
		shown, _, closed := strings.Cut(after, "```\n")
		if !found || !closed {
			t.Errorf("%s.md shows no Go", page)
		}
		for line := range strings.Lines(shown) {
			if !lines[strings.TrimSpace(line)] {
				t.Errorf("%s.md shows %q, which is in no example", page, line)
			}
		}
	}
}
