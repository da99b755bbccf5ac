package storm

import (
	"fmt"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/bench/provider"
	"github.com/quorlease/quorlease/bench/storm/authority"
)

const batchClient = "batch-scorer"

// looped is the batch job behind gateways that ask for its retry budget.
type looped struct {
	world
	cluster *authority.Authority
	model   provider.Model
	// labelled: it says which attempt a request is.
	labelled bool

	tally
	// firstNo is when the provider refused it first, lastRetry when one of its
	// retries was forwarded last.
	firstNo, lastRetry time.Duration
	// refusals are those of the budget.
	refusals int
}

// work is a worker without any delay, for ever. A refusal of the gateway takes it
// as long as one of the provider.
func (l *looped) work(gateway int, attempt uint32) {
	said := attempt
	if !l.labelled {
		said = 0
	}
	if l.cluster.Admit(gateway, batchClient, said) != nil {
		l.refusals++
		l.At(nil, loopRefusal, func() { l.work(gateway, attempt+1) })
		return
	}
	l.attempts++
	if attempt > 0 {
		l.lastRetry = l.Real()
	}
	if l.model.Ask(l.Real(), request).OK {
		l.admitted++
		l.At(nil, time.Second, func() { l.work(gateway, 0) })
		return
	}
	if l.firstNo == 0 {
		l.firstNo = l.Real()
	}
	l.At(nil, loopRefusal, func() { l.work(gateway, attempt+1) })
}

// playLoops lets the job loop beside the teams, whose requests ask for their own
// budgets.
func playLoops(seed uint64, o *Outcome, labelled bool, loops int) (*looped, *tally) {
	w := newWorld(seed)
	l := &looped{
		world: w, labelled: labelled, model: o.watch(provider.NewMinute(quotaTokens), 2*time.Second, quotaLength),
		cluster: authority.New(w.Stage, 3, &logv1.ApplyLimits{RetryBudgets: []*logv1.RetryBudget{authority.Budget()}}),
	}
	for i := range loops {
		w.At(nil, 0, func() { l.work(i, 0) })
	}
	people := &tally{}
	legit(w, &guarded{l.model, l.cluster}, people)
	w.until(quotaLength)
	return l, people
}

// guarded is a provider behind a gateway that asks for the retry budget of a
// team.
type guarded struct {
	provider.Model
	cluster *authority.Authority
}

// Ask forwards what the budget admits. A team's first attempts always are.
func (g *guarded) Ask(now time.Duration, call provider.Call) provider.Answer {
	if denial := g.cluster.Admit(0, "team", 0); denial != nil {
		panic(fmt.Sprintf("a client that never retries is refused: %v", denial))
	}
	return g.Model.Ask(now, call)
}

func budgeted(seed uint64, o *Outcome) {
	l, people := playLoops(seed, o, true, batchLoops)
	refused := l.attempts - l.admitted
	o.within(BatchMinute, float64(l.attempts)/quotaLength.Minutes(), -open, 100)
	o.within(BatchRefused, float64(refused), 80, 140)
	o.show(BatchRefusedPart, l.refused())
	o.within(LegitRefused, people.refused(), 2.4, 3.9)
	o.within(RetriesStop, (l.lastRetry - l.firstNo).Seconds(), 0, 1.5)
	o.within(LocalRefusals, float64(l.refusals)/quotaLength.Minutes(), 11_000, 19_000)
	// Who does not say that it retries is not seen: exactly as before.
	silent, before := &Outcome{}, &Outcome{}
	blind, blindPeople := playLoops(seed, silent, false, batchLoops)
	peak(seed, before)
	was, _ := before.Figure(LegitRefused)
	o.within(SilentRefused, blindPeople.refused(), was.Value-1, was.Value+1)
	_, twenty := playLoops(seed, &Outcome{}, false, 20)
	o.within(SilentTwenty, twenty.refused(), 29.5, 34.5)
	o.within(SilentMinute, float64(blind.attempts)/quotaLength.Minutes(), 11_000*0.97, 11_000*1.03)
}
