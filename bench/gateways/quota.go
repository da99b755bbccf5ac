package gateways

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/quorlease/quorlease/bench/provider"
	"github.com/quorlease/quorlease/bench/storm"
	"github.com/quorlease/quorlease/bench/upstream"
)

// The quota: a deployment of 566,500 tokens a minute of the clock, which three teams share
// with a batch job that tries again at once.
const (
	quotaTokens   = 566_500
	quotaLength   = 16 * time.Minute
	quotaWorkers  = 33
	quotaGateways = 3
	// quotaInput and quotaOutput are what a request is estimated at.
	quotaInput  = 487
	quotaOutput = 64
	quotaTakes  = time.Second
	// quotaPause is what a worker needs to send again.
	quotaPause = 109 * time.Millisecond
	scorer     = "batch-scorer"
	teams      = "teams"
	legit      = "legit"
	// quotaRoute is where Azure has the model in the path.
	quotaRoute = "/openai/deployments/%s/chat/completions"
	// quotaBurst is three hundredths of a minute's tokens, which the rate leaves of it: so no
	// minute of the clock sees more than it has, wherever the burst falls.
	quotaBurst = 16_900
)

// teamsMinute are the requests a minute of those who share the quota.
var teamsMinute = []float64{2.5 * 60, 1.5 * 60, 1 * 60}

// quotaSetting has a gateway's file that ends with more.
func (h *House) quotaSetting(limits, more string) *Setting {
	return &Setting{
		Gateways: quotaGateways, Nodes: 3, Limits: limits + h.budgets(),
		File: func(to string) string {
			return fmt.Sprintf("deployments: [{name: main, provider: azure, upstream: %q, output_max: %d}]\n"+
				"classes: [{name: legit, max_wait: %v}, {name: batch, max_wait: %v}]\ncoalesce: false\n%s",
				to, quotaOutput, h.time(5*time.Second, time.Second), h.time(time.Minute, time.Second), more)
		},
		Provider: upstream.Config{
			API: upstream.Azure, Seed: h.Seed, Latency: quotaTakes, OutputTokens: quotaOutput, LedgerMax: 1_000_000,
			Rules: provider.Rules{Limits: provider.Limits{Input: quotaTokens}, FixedMinute: true},
		},
	}
}

// labelMax is the largest number that a gateway believes of retries.
const labelMax = 1000

// plain is a gateway that does nothing but ask for the budget.
const plain = "tries: 1\ncircuit: {throttles: none, fraction: none}\n"

// quota is one that is played.
type quota struct {
	*crowd
	length time.Duration
	// labelled: the job says which of its requests are retries.
	labelled bool

	mu struct {
		sync.Mutex
		// firstNo is when the provider had refused the job first, and lastRetry when one of its
		// retries was sent last that the provider was asked about.
		firstNo, lastRetry time.Duration
		// local is how many requests gateways refused by themselves.
		local int
	}
}

// own are the codes of what gateways refuse by themselves here.
var own = map[string]bool{"retry_budget_exceeded": true, "circuit_open": true}

func (q *quota) play() (upstream.Ledger, error) {
	for worker := range quotaWorkers {
		q.programs.Go(func() { q.work(worker) })
	}
	number := quotaWorkers
	for _, perMinute := range teamsMinute {
		first := number
		moments := q.poisson(perMinute, 0, q.length)
		number += len(moments)
		q.come(moments, func() bool { return true }, func(n int) {
			q.send(n%quotaGateways, work{
				client: teams, class: legit, attempt: -1, path: fmt.Sprintf(quotaRoute, teams),
				body: chat(teams, first+n, quotaInput, quotaOutput),
			})
		})
	}

	return q.finish()
}

// work is a worker without any delay, until the end. It sends the same work until that is
// done.
func (q *quota) work(worker int) {
	for number := worker; q.Now() < q.length; number += 1_000_000 {
		w := work{
			client: scorer, class: batch, attempt: -1, path: fmt.Sprintf(quotaRoute, scorer),
			body: chat(scorer, number%100_000_000, quotaInput, quotaOutput),
		}
		for attempt := 0; q.Now() < q.length; attempt++ {
			if q.labelled {
				w.attempt = min(attempt, labelMax)
			}
			s := q.send(worker%quotaGateways, w)
			if s.ok() {
				break
			}
			q.count(attempt, &s)
			if !q.until(s.began + quotaPause) {
				return
			}
		}
	}
}

func (q *quota) count(attempt int, s *sent) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case own[s.reason]:
		q.mu.local++
	case s.status == http.StatusTooManyRequests:
		if q.mu.firstNo == 0 {
			q.mu.firstNo = s.ended
		}
		if attempt > 0 {
			q.mu.lastRetry = max(q.mu.lastRetry, s.began)
		}
	}
}

// teamsRefused is which part of the teams' requests the provider refused, in percent.
func (q *quota) teamsRefused(l *upstream.Ledger) float64 {
	return percent(refused(by(l, teams)), len(q.of(teams)))
}

// lost is which part of the teams' requests was not served, by whomever refused, in percent.
func (q *quota) lost() float64 {
	own := q.of(teams)
	return percent(len(own)-answered(own), len(own))
}

func quotaBudget(ctx context.Context, h *House, o *storm.Outcome) error {
	play := func(file string, labelled bool, judge func(*quota, *upstream.Ledger)) error {
		return h.on(ctx, h.quotaSetting("", file), func(stage Stage) error {
			q := &quota{crowd: newCrowd(ctx, h, stage), length: h.span(quotaLength), labelled: labelled}
			l, err := q.play()
			if err == nil {
				judge(q, &l)
			}
			return err
		})
	}
	err := play(plain, true, func(q *quota, l *upstream.Ledger) {
		calls := by(l, scorer)
		h.within(o, storm.BatchMinute, float64(len(calls))/q.length.Minutes(), none, 100/h.Part)
		h.within(o, storm.BatchRefused, float64(refused(calls)), 80, 140)
		// What the teams lose they lose in the first minute, before the job has to stop.
		h.within(o, storm.LegitRefused, q.teamsRefused(l), 2.4/h.Part, 3.9/h.Part)
		h.within(o, legitLost, q.lost(), 2.4/h.Part, 3.9/h.Part)
		h.within(o, storm.RetriesStop, (q.mu.lastRetry - q.mu.firstNo).Seconds(), 0, 1.5)
		h.within(o, storm.LocalRefusals, float64(q.mu.local)/q.length.Minutes(), 11_000, 19_000)
		h.exactly(o, unanswered, unpaid(l, answered(q.all()), quotaInput+quotaOutput), 0)
		q.picture(o, l, 2*time.Second, q.length)
	})
	if err != nil {
		return err
	}
	err = play(plain, false, func(q *quota, l *upstream.Ledger) {
		h.within(o, silentBatch, float64(refused(by(l, scorer))), 80, 140)
		h.within(o, silentStop, (q.mu.lastRetry - q.mu.firstNo).Seconds(), 0, 1.5)
		h.within(o, storm.SilentRefused, q.lost(), 2.4/h.Part, 3.9/h.Part)
	})
	if err != nil {
		return err
	}
	return play("", false, func(q *quota, l *upstream.Ledger) {
		h.within(o, defaultBatch, float64(refused(by(l, scorer))), none, 140)
		h.show(o, defaultRefused, q.lost())
	})
}

func quotaFair(ctx context.Context, h *House, o *storm.Outcome) error {
	limits := fmt.Sprintf(`limits:
- name: deployment
  match: {deployment: main}
  per: [deployment]
  rate: {tokens: %s}
  burst: {tokens: %d}
  classes: {legit: {share: 33.10%%, burst: 35%%}, batch: {}}
  queue: {max_wait: %v}
`, h.rate(quotaTokens-quotaBurst), quotaBurst, h.time(time.Minute, time.Second))
	return h.on(ctx, h.quotaSetting(limits, ""), func(stage Stage) error {
		q := &quota{crowd: newCrowd(ctx, h, stage), length: h.span(quotaLength)}
		l, err := q.play()
		if err != nil {
			return err
		}
		calls := by(&l, scorer)
		var waits []time.Duration
		for _, s := range q.of(teams) {
			waits = append(waits, s.took()-quotaTakes)
		}
		h.within(o, storm.BatchMinute, float64(len(calls))/q.length.Minutes(), 688, 708)
		h.exactly(o, storm.ProviderNo, refused(l.Calls), 0)
		h.within(o, storm.LegitRefused, q.teamsRefused(&l), 0, 0.5)
		h.within(o, legitLost, q.lost(), 0, 0.5)
		h.show(o, storm.LegitP50, quantile(waits, 0.5))
		h.within(o, storm.LegitP99, quantile(waits, 0.99), none, 0.25+h.Slack.Seconds())
		h.exactly(o, unanswered, unpaid(&l, answered(q.all()), quotaInput+quotaOutput), 0)
		q.picture(o, &l, 2*time.Second, q.length)
		return nil
	})
}
