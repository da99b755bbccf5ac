package gateways

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/quorlease/quorlease/bench/provider"
	"github.com/quorlease/quorlease/bench/storm"
	"github.com/quorlease/quorlease/bench/upstream"
)

// The night: an account of 400,000 input and 80,000 output tokens and 1,000 requests a
// minute, tasks of 2,500 and 300 tokens and six seconds, 72 live ones a minute and a
// backlog.
const (
	nightTasks    = 6000
	nightWorkers  = 200
	nightGateways = 3
	nightLive     = 72
	// nightRest is what three quarters of the account leave to the backlog, a minute.
	nightRest  = 48
	taskInput  = 2500
	taskOutput = 300
	taskTakes  = 6 * time.Second
	// nightBurst is the limit's, in tasks as they are estimated: a little more than they use.
	nightBurst   = 10
	taskEstimate = 2510
	backfill     = "backfill"
	live         = "live"
	batch        = "batch"
	// extra is waited beyond a hint, at most.
	extra = 2 * time.Second
	ever  = 100 * time.Hour
)

func (h *House) nightSetting() *Setting {
	limits := provider.Limits{Requests: 1000, Input: 400_000, Output: 80_000}
	return &Setting{
		Gateways: nightGateways, Nodes: 3,
		Limits: fmt.Sprintf(`limits:
- name: provider
  match: {deployment: main}
  per: [deployment]
  target: 75%%
  rate: {requests: %s, input_tokens: %s, output_tokens: %s}
  burst: {requests: 100, input_tokens: %d, output_tokens: %d}
  classes: {live: {share: 100%%, burst: 50%%}, batch: {}}
  queue: {max_wait: 1h}
  lease: %v
  on_quorum_loss: share
`, h.rate(limits.Requests), h.rate(limits.Input), h.rate(limits.Output),
			nightBurst*taskEstimate, 2*nightBurst*taskOutput, h.time(time.Minute, 5*time.Second)) + h.budgets(),
		File: func(to string) string {
			return fmt.Sprintf("deployments: [{name: main, provider: anthropic, upstream: %q, output_max: %d}]\n"+
				"classes: [{name: live, max_wait: %v}, {name: batch, max_wait: %v}]\n",
				to, taskOutput, h.time(10*time.Second, time.Second), h.time(time.Hour, time.Second))
		},
		Provider: upstream.Config{
			API: upstream.Anthropic, Rules: provider.Rules{Limits: limits}, Seed: h.Seed,
			TokensPerSecond: int64(taskOutput * time.Second / taskTakes), TokensPerEvent: 50, OutputTokens: taskOutput,
			LedgerMax: 1_000_000,
		},
	}
}

// night is one that is played.
type night struct {
	*crowd
	tasks int
	// taken and done are how many tasks somebody has taken on, and how many are done.
	taken, done atomic.Int64
	finished    time.Duration
	// over is closed when the backlog is done.
	over chan struct{}
	// gone are gateways that were killed.
	gone [nightGateways]atomic.Bool
}

// play plays it to its end; faults may go wrong meanwhile.
func (h *House) playNight(ctx context.Context, stage Stage, faults func(*night)) (*night, upstream.Ledger, error) {
	n := &night{crowd: newCrowd(ctx, h, stage), tasks: h.part(nightTasks), over: make(chan struct{})}
	for worker := range nightWorkers {
		n.programs.Go(func() { n.work(worker) })
	}
	moments := n.reckoned(nightLive, n.span())
	moments = append(moments, n.poisson(nightLive, n.span(), ever)...)
	n.come(moments, n.goesOn, func(number int) {
		w := work{
			client: live, class: live, attempt: -1, path: "/v1/messages",
			body: message(live, true, number, taskInput, taskOutput),
		}
		// Whose gateway dies asks another.
		for n.send(n.alive(number), w).status == 0 && n.ctx.Err() == nil {
		}
	})
	if faults != nil {
		n.programs.Go(func() { faults(n) })
	}
	l, err := n.finish()
	return n, l, err
}

// span is how long it is expected to take.
func (n *night) span() time.Duration {
	return time.Duration(float64(n.tasks) / nightRest * float64(time.Minute))
}

func (n *night) goesOn() bool {
	select {
	case <-n.over:
		return false
	default:
		return true
	}
}

// alive is a gateway that was not killed, by a number.
func (n *night) alive(number int) int {
	for range nightGateways {
		if !n.gone[number%nightGateways].Load() {
			break
		}
		number++
	}
	return number % nightGateways
}

// work is one of the backfill's workers: one task after the other, each until it is done.
func (n *night) work(worker int) {
	for {
		task := int(n.taken.Add(1)) - 1
		if task >= n.tasks {
			return
		}
		w := work{
			client: backfill, class: batch, attempt: -1, path: "/v1/messages",
			body: message(backfill, false, task, taskInput, taskOutput),
		}
		for {
			s := n.send(n.alive(worker), w)
			if s.ok() {
				break
			}
			if s.status != 0 && !n.pass(s.after+n.between(0, extra)) || n.ctx.Err() != nil {
				return
			}
		}
		if int(n.done.Add(1)) == n.tasks {
			n.finished = n.Now()
			close(n.over)
		}
	}
}

// waits are how long live tasks waited before they were worked on: those that came within
// a time and were served.
func waits(all []sent, from, until time.Duration) (waits []time.Duration) {
	for _, s := range all {
		if s.ok() && s.began >= from && s.began < until {
			waits = append(waits, s.took()-taskTakes)
		}
	}
	return waits
}

// liveWaits adds how long live tasks wait. Those that come in one bunch wait one after the
// other, and a part of a night has few bunches, which may be its bad ones.
func (h *House) liveWaits(o *storm.Outcome, waits []time.Duration) {
	part, measure := 0.99, storm.LiveP99
	if h.Part < 1 {
		h.show(o, storm.LiveP99, quantile(waits, part))
		part, measure = 0.98, liveP98
	}
	h.within(o, measure, quantile(waits, part), none, 0.25+h.Slack.Seconds())
}

func nightAfter(ctx context.Context, h *House, o *storm.Outcome) error {
	return h.on(ctx, h.nightSetting(), func(stage Stage) error {
		n, l, err := h.playNight(ctx, stage, nil)
		if err != nil {
			return err
		}
		minutes := n.finished.Minutes()
		done := answered(n.all())
		perMinute := float64(l.Billed.Input) / n.Now().Minutes()
		waits := waits(n.of(live), 0, ever)
		h.within(o, storm.PerDone, float64(len(l.Calls))/float64(done), 1, 1.01)
		h.exactly(o, storm.ProviderNo, refused(l.Calls), 0)
		h.within(o, storm.LivePart, percent(answered(n.of(live)), len(n.of(live))), 100, 100)
		h.show(o, storm.LiveP50, quantile(waits, 0.5))
		h.liveWaits(o, waits)
		h.show(o, storm.LiveMax, quantile(waits, 1))
		// What a part of the night takes is in proportion, but for the burst and the last tasks.
		whole := float64(n.tasks) / nightRest
		h.within(o, storm.BacklogTime, minutes, whole-2*h.Part-0.2, whole+2*h.Part+0.2)
		h.within(o, storm.InputMean, perMinute, none, most)
		h.within(o, storm.InputPart, 100*perMinute/400_000, 74, 76)
		h.within(o, storm.InputWorst, worst(l.Calls), none, 325_000)
		h.exactly(o, unanswered, unpaid(&l, done, taskInput+taskOutput), 0)
		n.picture(o, &l, time.Second, min(n.Now(), 5*time.Minute))
		return nil
	})
}
