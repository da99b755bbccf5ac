package storm

import (
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/bench/provider"
	"github.com/quorlease/quorlease/bench/storm/authority"
)

const (
	deployment = "deployment"
	legitClass = "legit"
	// deploymentBurst is three hundredths of a minute's tokens. The rate is what
	// they leave of it, so that no minute of the provider's clock sees more than it
	// admits, wherever the burst falls.
	deploymentBurst = 16_900
	// legitShare is what the teams are guaranteed, in hundredths of a percent: 330
	// requests a minute.
	legitShare   = 3310
	legitPatient = 5 * time.Second
	batchPatient = time.Minute
	// politeLoops is how many workers of the wrapped job there are.
	politeLoops = 20
)

// deploymentLimit is the shared quota with a part that is the teams'.
func deploymentLimit() *logv1.Limit {
	const tokens = quotaTokens - deploymentBurst
	l := authority.Limit(deployment, authority.Dimension("tokens", tokens, time.Minute, deploymentBurst))
	l.Classes = []*logv1.Class{
		{Name: legitClass, Share: legitShare, Burst: 6000},
		{Name: batchClass},
	}
	return l
}

// shared is the deployment behind the limit and the retry budget.
type shared struct {
	world
	cluster *authority.Authority
	model   provider.Model
}

// sender is who a request is from, and how long it would wait.
type sender struct {
	client, class string
	patience      time.Duration
}

// ask acquires for one request and forwards it. done is told whether it was
// served, and how long it waited. The provider charges what it estimates, so
// nothing is settled.
func (s *shared) ask(gateway int, from sender, done func(ok bool, waited time.Duration)) {
	if s.cluster.Admit(gateway, from.client, 0) != nil {
		done(false, 0)
		return
	}
	s.cluster.Acquire(&authority.Ask{
		Operation: &logv1.Acquire{
			Client: from.client, Class: from.class,
			Charges: []*logv1.Charge{authority.Charge(deployment, "", "tokens", request.Input+request.Output)},
		},
		MaxWait: from.patience,
		Done: func(a authority.Answer) {
			done(a.Granted && s.model.Ask(s.Real(), request).OK, a.Waited)
		},
	})
}

func fair(seed uint64, o *Outcome) {
	w := newWorld(seed)
	provided := &tally{}
	s := &shared{
		world: w, model: counted{o.watch(provider.NewMinute(quotaTokens), 2*time.Second, quotaLength), provided},
		cluster: authority.New(w.Stage, 3, &logv1.ApplyLimits{
			Limits: []*logv1.Limit{deploymentLimit()}, RetryBudgets: []*logv1.RetryBudget{authority.Budget()},
		}),
	}
	served := 0
	var work func(gateway int)
	work = func(gateway int) {
		s.ask(gateway, sender{batchClient, batchClass, batchPatient}, func(ok bool, _ time.Duration) {
			if ok {
				served++
				w.At(nil, time.Second, func() { work(gateway) })
			} else {
				w.At(nil, loopRefusal, func() { work(gateway) })
			}
		})
	}
	for i := range batchLoops {
		w.At(nil, 0, func() { work(i) })
	}
	came, turned := 0, 0
	var waits []time.Duration
	for i, perMinute := range teams {
		w.poisson(perMinute, quotaLength-legitPatient, func() {
			came++
			s.ask(i, sender{"team", legitClass, legitPatient}, func(ok bool, waited time.Duration) {
				waits = append(waits, waited)
				if !ok {
					turned++
				}
			})
		})
	}
	w.until(quotaLength)
	o.within(BatchMinute, float64(served)/quotaLength.Minutes(), 688, 708)
	o.exactly(ProviderNo, provided.attempts-provided.admitted, 0)
	o.within(LegitRefused, 100*ratio(turned, came), 0, 0.5)
	o.show(LegitP50, quantile(waits, 0.5).Seconds())
	o.within(LegitP99, quantile(waits, 0.99).Seconds(), 0, 0.25)
	o.within(PoliteRefused, polite(seed), 28.5, 33.5)
}

// counted is a model that counts.
type counted struct {
	provider.Model
	tally *tally
}

func (c counted) Ask(now time.Duration, call provider.Call) provider.Answer {
	answer := c.Model.Ask(now, call)
	c.tally.attempts++
	if answer.OK {
		c.tally.admitted++
	}
	return answer
}

// polite is which part of the teams' requests is refused, in percent, where the
// job waits as it is told and stays inside its retry budget, and nothing else
// stands between it and the quota.
func polite(seed uint64) float64 {
	w := newWorld(seed)
	model := provider.NewMinute(quotaTokens)
	cluster := authority.New(w.Stage, 3, &logv1.ApplyLimits{RetryBudgets: []*logv1.RetryBudget{authority.Budget()}})
	var try func(gateway int, attempt uint32)
	try = func(gateway int, attempt uint32) {
		wait := time.Second
		if denial := cluster.Admit(gateway, batchClient, attempt); denial != nil {
			wait, attempt = time.Duration(denial.GetRetryAfter()), 0
		} else if answer := model.Ask(w.Real(), request); answer.OK {
			attempt = 0
		} else {
			wait = answer.RetryAfter + w.Between(0, extraMost)
			attempt++
		}
		w.At(nil, wait, func() { try(gateway, attempt) })
	}
	for i := range politeLoops {
		w.At(nil, 0, func() { try(i, 0) })
	}
	var people tally
	legit(w, model, &people)
	w.until(quotaLength)
	return people.refused()
}
