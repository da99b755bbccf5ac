package gateways

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorlease/quorlease/bench/provider"
	"github.com/quorlease/quorlease/bench/storm"
	"github.com/quorlease/quorlease/bench/upstream"
)

// An account whose money is used up after a minute, and that its provider lets in again at
// five; the operator says so two minutes later.
const (
	capWorkers  = 30
	capGateways = 3
	capFrom     = time.Minute
	capUntil    = 5 * time.Minute
	capCleared  = 7 * time.Minute
	capLength   = 9 * time.Minute
	capTakes    = 2 * time.Second
	// capKnown is how long it may take until all gateways know.
	capKnown = 250 * time.Millisecond
	scribe   = "scribe"
	// capInput and capOutput are what a request uses.
	capInput  = 100
	capOutput = 16
)

var errNoOperator = errors.New("nobody operates this stage")

func (h *House) capSetting() *Setting {
	return &Setting{
		Gateways: capGateways, Nodes: 3,
		Limits: fmt.Sprintf("limits:\n- {name: provider, match: {deployment: main}, per: [deployment], target: 90%%, "+
			"rate: {requests: %s}, burst: {requests: 20}, queue: {max_wait: 1m}}\n", h.rate(600)) + h.budgets(),
		File: func(to string) string {
			// The account is the gateway's: that of a program would be nobody else's business.
			return fmt.Sprintf("deployments: [{name: main, provider: anthropic, upstream: %q, output_max: %d, key_env: %s}]\n",
				to, capOutput, KeyEnv)
		},
		Provider: upstream.Config{
			API: upstream.Anthropic, Seed: h.Seed, Latency: capTakes, OutputTokens: capOutput, LedgerMax: 1_000_000,
			Rules: provider.Rules{SpendCap: &provider.Span{From: capFrom, Until: capUntil}},
		},
	}
}

// playCap lets programs work until the end, and the operator clear the cap.
func (h *House) playCap(ctx context.Context, stage Stage, operator Operator) (*crowd, upstream.Ledger, error) {
	c := newCrowd(ctx, h, stage)
	for worker := range capWorkers {
		c.programs.Go(func() {
			for number := worker; c.Now() < capLength; number += capWorkers {
				s := c.send(worker%capGateways, work{
					client: scribe, attempt: -1, path: "/v1/messages", body: message(scribe, false, number, capInput, capOutput),
				})
				if !s.ok() && !c.pass(max(time.Second, s.after)) {
					return
				}
			}
		})
	}
	c.programs.Go(func() {
		if c.until(capCleared) {
			c.fail(operator.Clear(ctx, "provider", "main"))
		}
	})
	l, err := c.finish()
	return c, l, err
}

// moneyEnds is a spend cap: from the first refusal on nobody is sent to the provider until a
// person says so, also when the provider would serve again.
func moneyEnds(ctx context.Context, h *House, o *storm.Outcome) error {
	return h.on(ctx, h.capSetting(), func(stage Stage) error {
		operator, ok := stage.(Operator)
		if !ok {
			return errNoOperator
		}
		c, l, err := h.playCap(ctx, stage, operator)
		if err != nil {
			return err
		}
		first, late, back, before := capLength, 0, 0, 0
		for i := range l.Calls {
			if l.Calls[i].Outcome == upstream.Refused {
				first = min(first, l.Calls[i].Ended)
			}
		}
		for i := range l.Calls {
			switch at := l.Calls[i].Arrived; {
			case at < capFrom:
				before++
			case at > first+capKnown && at < capCleared:
				late++
			case at >= capCleared:
				back++
			}
		}
		h.within(o, capServed, float64(before), 100, most)
		h.within(o, storm.ProviderNo, float64(refused(l.Calls)), 1, capWorkers)
		h.exactly(o, capAttempts, late, 0)
		h.exactly(o, capAlerts, operator.SpendCaps(), 1)
		h.within(o, capResumed, float64(back), capWorkers, most)
		h.exactly(o, unanswered, unpaid(&l, answered(c.all()), capInput+capOutput), 0)
		c.picture(o, &l, time.Second, capLength)
		return nil
	})
}
