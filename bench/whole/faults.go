package whole

import (
	"context"
	"fmt"
	"time"

	"github.com/quorlease/quorlease/bench/disturb"
	"github.com/quorlease/quorlease/bench/plot"
	"github.com/quorlease/quorlease/bench/sheet"
)

func (c *Config) disturb() disturb.Config {
	one := disturb.Default()
	if c.Hasty {
		one.Quick()
	}
	one.Binary, one.Dir, one.Seed, one.Progress, one.Log = c.Binary, c.Dir, c.Seed, c.Progress, c.Log
	return one
}

// faultsTake is about how long the faults take: those of a kill for as long as they go on,
// and three others.
func (c *Config) faultsTake() time.Duration {
	one := c.disturb()
	return one.Kills + one.Calm + one.Measured + 3*(one.Hang+one.Settle) + 30*time.Second
}

// disturbed is what callers saw of nodes that were killed, stopped and cut off.
type disturbed struct{ *disturb.Result }

func faults(ctx context.Context, c *Config) (Shown, error) {
	result, err := disturb.Run(ctx, c.disturb())
	if err != nil {
		return nil, err
	}
	return disturbed{result}, nil
}

// Section is the run as a part of a sheet.
func (d disturbed) Section() sheet.Section {
	s := sheet.Section{
		Section: "faults", Title: "While nodes are killed, stopped and cut off", Hasty: d.Hasty, Checks: d.Checks,
		Heading: []string{fmt.Sprintf(
			"%s grants a second at most in a closed loop, %s in an open one; %s a second were asked for of buckets "+
				"that are not short",
			plot.Number(d.MeasuredRate), plot.Number(d.OpenRate), plot.Number(d.OfferedRate))},
	}
	// What is only there to be read is in the table.
	for i := range d.Bounds {
		if d.Bounds[i].Must() != "" {
			s.Bounds = append(s.Bounds, d.Bounds[i])
		}
	}
	phases := sheet.Table{Title: "what callers saw, from when a question was meant to be asked", Heads: []string{
		"what happened", "times", "asked", "not granted", "from escrow", "p50 ms", "p99 ms", "longest ms",
		"short: longest ms", "entries: longest ms", "alerts", "callers late ms",
	}}
	for i := range d.Phases {
		p := &d.Phases[i]
		if p.Why != "" || p.Plenty == nil {
			phases.Rows = append(phases.Rows, []string{p.Name, "not measured: " + p.Why})
			continue
		}
		phases.Rows = append(phases.Rows, []string{
			p.Name, plot.Grouped(int64(p.Times)), plot.Grouped(p.Plenty.Asked), plot.Grouped(p.Plenty.Asked - p.Plenty.Granted),
			plot.Number(float64(p.Plenty.Escrow) / float64(max(1, p.Plenty.Granted))), plot.Number(p.Plenty.P50),
			plot.Number(p.Plenty.P99), plot.Number(p.Plenty.Max), plot.Number(p.Short.Max), plot.Number(p.Exact.Max),
			plot.Grouped(p.Alerts), plot.Number(p.LateMS),
		})
	}
	slacks := sheet.Table{
		Title: "by how much spending may trail debiting (G2), and by how much it can have",
		Heads: []string{"limit", "slack s", "slack tokens", "seen s", "seen tokens"},
	}
	for i := range d.Slacks {
		one := &d.Slacks[i]
		slacks.Rows = append(slacks.Rows, []string{
			one.Limit, plot.Number(one.SlackMS / 1000), plot.Grouped(one.SlackTokens), plot.Number(one.SeenMS / 1000),
			plot.Grouped(one.SeenTokens),
		})
	}
	s.Tables = []sheet.Table{phases, slacks}
	return s
}
