package whole

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorlease/quorlease/bench"
	"github.com/quorlease/quorlease/bench/compare"
	"github.com/quorlease/quorlease/bench/front"
	"github.com/quorlease/quorlease/bench/grow"
	"github.com/quorlease/quorlease/bench/permit"
	"github.com/quorlease/quorlease/bench/scale"
	"github.com/quorlease/quorlease/bench/sheet"
)

// Shown is what a part came to. It is encoded as JSON as it is.
type Shown interface{ Section() sheet.Section }

// Part is one measure.
type Part struct {
	// Name is its slug, Title what it is about.
	Name, Title string
	// Long: it takes long whatever is asked of it.
	Long bool
	// Takes is about how long it takes.
	Takes func(c *Config) time.Duration
	// Ready finds out before anything runs whether it can. Nil: it always can.
	Ready func(c *Config) error
	// Run measures. The directory of c is the part's own and empty. What is not as it must
	// be is in what it returns, and no error.
	Run func(ctx context.Context, c *Config) (Shown, error)
}

// Parts are all of them, in their order.
func Parts() []Part {
	return []Part{
		{
			Name: "compare", Title: "beside what people run today",
			Takes: func(c *Config) time.Duration { own := c.compare(); return own.Takes() },
			Ready: func(c *Config) error { own := c.compare(); return compare.Ready(&own) },
			Run:   func(ctx context.Context, c *Config) (Shown, error) { return compare.Run(ctx, c.compare()) },
		},
		{
			Name: "local", Title: "decisions in the client's own memory",
			Takes: func(c *Config) time.Duration { own := c.permit(); return own.Takes() },
			Run:   func(ctx context.Context, c *Config) (Shown, error) { return permit.Run(ctx, c.permit()) },
		},
		{
			Name: "scale", Title: "what nodes add, and what keys, callers and snapshots cost",
			Takes: func(c *Config) time.Duration { own := c.scale(); return own.Takes() },
			Run:   func(ctx context.Context, c *Config) (Shown, error) { return scale.Run(ctx, c.scale()) },
		},
		{
			Name: "gateway", Title: "what a gateway in front of a provider costs",
			Takes: func(c *Config) time.Duration { own := c.front(); return own.Takes() },
			Run:   func(ctx context.Context, c *Config) (Shown, error) { return front.Run(ctx, c.front()) },
		},
		{
			Name: "faults", Title: "while nodes are killed, stopped and cut off",
			Takes: (*Config).faultsTake, Run: faults,
		},
		{
			Name: "members", Title: "members come and go", Long: true,
			Takes: func(c *Config) time.Duration { return time.Duration(c.Cycles) * cycleTakes }, Run: members,
		},
	}
}

func (c *Config) permit() permit.Config {
	one := permit.Default()
	if c.Hasty {
		one.Quick()
	}
	one.Rounds, one.Progress = c.Rounds, c.Progress
	return one
}

// cycleTakes is about how long it takes to go from three voters to five and back.
const cycleTakes = 25 * time.Second

// members goes from three voters to five and back under load, with a leader killed in
// each cycle.
func members(ctx context.Context, c *Config) (_ Shown, err error) {
	nodes, err := bench.StartNodes(bench.NodesConfig{
		Binary: c.Binary, Dir: c.Dir, Count: 3, Spare: 2, Args: grow.Args(), Log: c.Log,
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, nodes.Close()) }()
	result, err := grow.Run(ctx, grow.Config{Nodes: nodes, Cycles: c.Cycles, Seed: c.Seed, Out: c.Progress})
	if err != nil {
		return nil, fmt.Errorf("members come and go: %w", err)
	}
	return grownOf(c, result), nil
}
