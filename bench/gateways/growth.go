package gateways

import (
	"context"
	"fmt"
	"time"

	"github.com/quorlease/quorlease/bench/provider"
	"github.com/quorlease/quorlease/bench/storm"
	"github.com/quorlease/quorlease/bench/upstream"
)

// An account that may grow by half in a quarter of an hour, beyond 100,000 tokens a minute.
// Work for more than that is there from the beginning.
const (
	growthFree    = 100_000
	growthTask    = 10_000
	growthBurst   = 12_000
	growthTakes   = time.Second
	growthWorkers = 40
	growthStep    = 16 * time.Minute
	growthLength  = 40 * time.Minute
	growthOnce    = 3 * time.Minute
	miner         = "miner"
)

// growthRates are tokens a minute, a step each: with the burst no minute has more than half
// as much again as those of a quarter of an hour before.
var growthRates = []int64{87_000, 117_000, 160_000}

func (h *House) growthLimits(perMinute int64) string {
	return fmt.Sprintf("limits:\n- {name: provider, match: {deployment: main}, per: [deployment], "+
		"rate: {input_tokens: %s}, burst: {input_tokens: %d}, queue: {max_wait: 1h}}\n", h.rate(perMinute), growthBurst)
}

func (h *House) growthSetting(perMinute int64) *Setting {
	return &Setting{
		Gateways: 1, Nodes: 1, Limits: h.growthLimits(perMinute) + h.budgets(),
		File: func(to string) string {
			return fmt.Sprintf("deployments: [{name: main, provider: anthropic, upstream: %q, output_max: 16}]\n"+
				"classes: [{name: batch, max_wait: %v}]\n", to, h.time(time.Hour, time.Second))
		},
		Provider: upstream.Config{
			API: upstream.Anthropic, Seed: h.Seed, Latency: growthTakes, OutputTokens: 16, LedgerMax: 1_000_000,
			Rules: provider.Rules{Growth: provider.Growth{Above: growthFree}},
		},
	}
}

// grow lets programs work, and puts one rate after the other in force, until the end.
func (h *House) grow(c *crowd, operator Operator, length time.Duration, rates []int64) error {
	playing, end := context.WithCancel(c.ctx)
	defer end()
	whole := c.ctx
	c.ctx = playing
	for worker := range growthWorkers {
		c.programs.Go(func() {
			for number := worker; c.Now() < length; number += growthWorkers {
				s := c.send(0, work{
					client: miner, class: batch, attempt: -1, path: "/v1/messages",
					body: message(miner, false, number, growthTask, 16),
				})
				if !s.ok() && !c.pass(max(time.Second, s.after)) {
					return
				}
			}
		})
	}
	for i, rate := range rates {
		if !c.until(time.Duration(i+1) * growthStep) {
			break
		}
		c.fail(operator.Apply(whole, h.growthLimits(rate)))
	}
	c.until(length)
	// What still waits would wait on.
	end()
	c.programs.Wait()
	c.ctx = whole
	return c.failed()
}

// slowedDown is how often the provider asked to slow down, under rates that follow one
// another.
func (h *House) slowedDown(
	ctx context.Context, length time.Duration, rates []int64, o *storm.Outcome,
) (no int, err error) {
	err = h.on(ctx, h.growthSetting(rates[0]), func(stage Stage) error {
		operator, ok := stage.(Operator)
		if !ok {
			return errNoOperator
		}
		c := newCrowd(ctx, h, stage)
		if err := h.grow(c, operator, length, rates[1:]); err != nil {
			return err
		}
		l := c.Provider().Ledger()
		for i := range l.Calls {
			if l.Calls[i].Cause == upstream.SlowDown {
				no++
			}
		}
		if o != nil {
			h.within(o, growthLast, lastMinutes(&l, length), 0.97, 1.01)
			c.picture(o, &l, 10*time.Second, length)
		}
		return nil
	})
	return no, err
}

// lastMinutes is which part of the last rate the last five minutes used.
func lastMinutes(l *upstream.Ledger, length time.Duration) float64 {
	const span = 5 * time.Minute
	tokens := int64(0)
	for i := range l.Calls {
		if at := l.Calls[i].Arrived; at >= length-span && at < length {
			tokens += l.Calls[i].Estimated.Input
		}
	}
	return float64(tokens) / span.Minutes() / float64(growthRates[len(growthRates)-1])
}

// growsInSteps is a limit that is raised by less than half every quarter of an hour, and one
// that is not.
func growsInSteps(ctx context.Context, h *House, o *storm.Outcome) error {
	steps, err := h.slowedDown(ctx, growthLength, growthRates, o)
	if err != nil {
		return err
	}
	once, err := h.slowedDown(ctx, growthOnce, growthRates[len(growthRates)-1:], nil)
	if err != nil {
		return err
	}
	h.exactly(o, slowSteps, steps, 0)
	h.within(o, slowOnce, float64(once), 1, most)
	return nil
}
