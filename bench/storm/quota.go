package storm

import (
	"time"

	"github.com/quorlease/quorlease/bench/provider"
)

// quotaStorms are those of one batch job in the quota that four teams share.
func quotaStorms() []Scenario {
	return []Scenario{
		{
			Slug: "s1-reconciled", Title: "a batch job and three teams share one deployment",
			Text: "1,369 batch requests a minute whatever is answered, beside 300 of three teams; " +
				"tokens are metered before the provider decides.",
			run: reconciled,
		},
		{
			Slug: "s1-peak", Title: "the batch job tries again at once, for ever",
			Text: "33 workers without any delay, 16 minutes.",
			run:  peak,
		},
		{
			Slug: "s1-budget", Title: "the same job with a retry budget",
			Text: "Three retries a request, a fifth of what a client sends in five minutes. Three gateways decide without a " +
				"commit. And once more without saying which requests are retries: then nobody sees them.",
			Twins: []string{"s1-peak"},
			run:   budgeted,
		},
		{
			Slug: "s1-fair", Title: "the same job with a retry budget and a limit that guarantees the teams their part",
			Text: "330 requests a minute are the teams', the batch job waits for what is left. " +
				"And a polite job with a retry budget and no such limit: it takes the quota all the same.",
			Twins: []string{"s1-reconciled", "s1-peak"},
			run:   fair,
		},
		{
			Slug: "s1-alerts", Title: "who is told when a client retries too much",
			Text: "More than a tenth of its requests for 90, 119 and 120 seconds, and more than a fifth.",
			run:  alerts,
		},
	}
}

const (
	quotaLength = 16 * time.Minute
	quotaTokens = 566_500
	batchMinute = 1369
	batchLoops  = 33
	// prompt are the prompt tokens of a request on average.
	prompt = 487.4
	// loopRefusal is what a round trip of a refused request took.
	loopRefusal = 109 * time.Millisecond
)

// teams are the requests a minute of those who share the quota.
var teams = []float64{2.5 * 60, 1.5 * 60, 1 * 60}

// request is one of the deployment's: prompt and the most that may come back.
var request = provider.Call{Input: 487, Output: 64}

// legit lets the teams ask, each request once, and counts.
func legit(w world, model provider.Model, t *tally) {
	n := &naive{world: w, model: model, call: request, most: 1, seen: t.of(w)}
	for _, perMinute := range teams {
		w.poisson(perMinute, quotaLength, func() { n.try(0, nobody) })
	}
}

func reconciled(seed uint64, o *Outcome) {
	w := newWorld(seed)
	model := o.watch(provider.NewMinute(quotaTokens), 2*time.Second, quotaLength)
	var batch, people tally
	var bill meter
	n := &naive{world: w, model: bill.in(model), call: request, most: 1, seen: batch.of(w)}
	w.even(batchMinute, quotaLength, func() { n.try(0, nobody) })
	legit(w, model, &people)
	w.until(quotaLength)
	refused := batch.attempts - batch.admitted
	o.within(BatchMinute, float64(batch.attempts)/quotaLength.Minutes(), 1368, 1370)
	o.within(BatchRefused, float64(refused), 8412*0.99, 8412*1.01)
	o.within(BatchRefusedPart, batch.refused(), 37.4, 39.4)
	o.within(LegitRefused, people.refused(), 35, 41)
	o.within(Billed, bill.ahead-bill.served, 4.1e6*0.99, 4.1e6*1.01)
	o.within(BilledAfter, bill.behind-bill.served, 0, 0)
}

// meter counts prompt tokens ahead of the provider's decision and behind it.
type meter struct {
	ahead, behind float64
	// served are those of requests that were served.
	served float64
}

// in is the model with the meter in its path.
func (m *meter) in(model provider.Model) provider.Model { return metered{model, m} }

type metered struct {
	provider.Model
	meter *meter
}

func (m metered) Ask(now time.Duration, call provider.Call) provider.Answer {
	m.meter.ahead += prompt
	answer := m.Model.Ask(now, call)
	if !answer.OK {
		return answer
	}
	m.meter.behind += prompt
	m.meter.served += prompt
	return answer
}

// loop is a worker that tries again at once until it is served.
func loop(w world, model provider.Model, t *tally) {
	n := &naive{
		world: w, model: model, call: request,
		refusal: loopRefusal, success: time.Second, delay: fixed(0), seen: t.of(w),
	}
	var work func()
	work = func() { n.try(0, func(bool) { work() }) }
	w.At(nil, 0, work)
}

func peak(seed uint64, o *Outcome) {
	w := newWorld(seed)
	model := o.watch(provider.NewMinute(quotaTokens), 2*time.Second, quotaLength)
	var batch, people tally
	for range batchLoops {
		loop(w, model, &batch)
	}
	legit(w, model, &people)
	w.until(quotaLength)
	refused := batch.attempts - batch.admitted
	o.within(BatchMinute, float64(batch.attempts)/quotaLength.Minutes(), 11_000*0.97, 11_000*1.03)
	o.within(BatchRefused, float64(refused), 158_900*0.985, 158_900*1.015)
	o.show(BatchRefusedPart, batch.refused())
	o.within(LegitRefused, people.refused(), 53.5, 58.5)
	o.show(Billed, float64(refused)*prompt)
}
