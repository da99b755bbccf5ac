package storm

import (
	"math"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/bench/provider"
	"github.com/quorlease/quorlease/bench/storm/authority"
	"github.com/quorlease/quorlease/cluster/queue"
)

const (
	backlogTasks = 6000
	// pace is what of the provider's limits is handed out, in hundredths of a
	// percent: the margin of a quarter.
	pace = 7500
	// paceTasks is that in tasks a minute.
	paceTasks = 120
	// burstTasks is the limit's burst, in tasks.
	burstTasks = 10
	// extraMost is what is waited beyond a provider's hint, at most.
	extraMost = 2 * time.Second

	nightlyLimit = "provider"
	openingLimit = "backfill"
	liveClass    = "live"
	batchClass   = "batch"
)

// patience is how long a task waits for its lease: people go away.
var patience = map[string]time.Duration{liveClass: 10 * time.Second, batchClass: time.Hour}

// paced is a night with Quorlease: gateways that hold a lease for each call.
type paced struct {
	world
	cluster *authority.Authority
	model   provider.Model
	night   night

	tally
	// spent are the input tokens of admitted calls.
	spent []spent
	// live are the waits of live tasks, from coming to being granted.
	live []time.Duration
	// came are the moments at which they came.
	came []time.Duration
	// liveEnded of them are no longer under way, liveDone were served.
	liveEnded, liveDone int
	// tasks are those of the backfill, backlog those that nobody works on yet.
	tasks, backlog, done int
	finished             time.Duration
	// flights are the calls of the backfill that are under way, and calls how many each
	// lease has had, where something goes wrong.
	flights []*flight
	calls   map[string]int
	// etas are what waiters were told at first, over what they then waited.
	etas []float64
}

type spent struct {
	at     time.Duration
	tokens int64
}

// night is how one is played.
type night struct {
	// tasks is how many the backfill has.
	tasks int
	// reserve is how many tasks of the burst are kept for live ones.
	reserve int64
	options provider.Options
	// sigma is the spread of the logarithm of a task's real size. estimated: nobody
	// says what it was.
	sigma     float64
	estimated bool
	// ramp is how long the limit takes to reopen after a refusal.
	ramp time.Duration
	// opening is how long the backfill alone takes to come to its rate. 0: it does
	// not.
	opening time.Duration
	// faults, where set, plans what goes wrong.
	faults func(p *paced)
	// even: live tasks come at equal distances. chance: their number is chance, too.
	even, chance bool
}

// nightlyLimits are the provider's, less the margin. All that comes fills what is
// kept for live tasks first, so that these go before, and what they leave is the
// backfill's.
func nightlyLimits(n night) []*logv1.Limit {
	plan := nightly()
	l := authority.Limit(nightlyLimit,
		authority.Dimension(provider.Requests, plan.Limits.Requests, time.Minute, 100),
		authority.Dimension(provider.InputTokens, plan.Limits.Input, time.Minute, burstTasks*plan.Task.Input),
		authority.Dimension(provider.OutputTokens, plan.Limits.Output, time.Minute, 2*burstTasks*plan.Task.Output),
	)
	l.Target, l.Ramp = pace, int64(n.ramp)
	l.Classes = []*logv1.Class{
		{Name: liveClass, Share: 10_000, Burst: n.reserve * 10_000 / burstTasks},
		{Name: batchClass},
	}
	if n.opening == 0 {
		return []*logv1.Limit{l}
	}
	// What live tasks leave of the pace, as a limit of the backfill's own.
	left, _ := plan.At(paceTasks, n.tasks)
	opening := authority.Limit(openingLimit,
		authority.Dimension(provider.Requests, int64(left), time.Minute, burstTasks))
	opening.Ramp = int64(n.opening)
	return []*logv1.Limit{l, opening}
}

func playNight(seed uint64, o *Outcome, n night) *paced {
	w := newWorld(seed)
	p := &paced{
		world: w, night: n, tasks: n.tasks, backlog: n.tasks,
		model: provider.NewBuckets(nightly().Limits, n.options),
	}
	if o != nil {
		p.model = o.watch(p.model, time.Second, 5*time.Minute)
	}
	limits := &logv1.ApplyLimits{Limits: nightlyLimits(n)}
	if n.faults == nil {
		p.cluster = authority.New(w.Stage, 3, limits)
	} else {
		p.cluster, p.calls = authority.NewApart(w.Stage, 3, limits), make(map[string]int)
		n.faults(p)
	}
	if n.opening > 0 {
		p.cluster.Throttled(openingLimit, "", time.Millisecond)
	}
	for range nightlyWorkers {
		w.At(nil, 0, p.work)
	}
	const long = 4 * time.Hour
	arrivals := w.poisson
	switch {
	case n.even:
		arrivals = w.even
	case !n.chance:
		_, span := nightly().At(paceTasks, n.tasks)
		arrivals = func(perMinute float64, end time.Duration, f func()) { w.reckoned(perMinute, span, end, f) }
	}
	arrivals(liveMinute, long, func() {
		came := w.Real()
		p.task(liveClass, 0, func(granted time.Duration) {
			p.live, p.came = append(p.live, granted-came), append(p.came, came)
		}, func(ok bool) {
			p.liveEnded++
			if ok {
				p.liveDone++
			}
		})
	})
	w.Run(long, func() bool { return p.done == p.tasks })
	p.finished = w.Real()
	return p
}

// work is one of the backfill's workers: one task after the other.
func (p *paced) work() {
	if p.backlog == 0 {
		return
	}
	p.backlog--
	p.task(batchClass, 0, func(time.Duration) {}, func(ok bool) {
		if ok {
			p.done++
		} else {
			p.backlog++
		}
		p.work()
	})
}

// task acquires, calls the provider and settles. Only it tries again: after the
// provider's hint and a random extra, with a new lease.
func (p *paced) task(class string, attempt int, granted func(at time.Duration), done func(ok bool)) {
	op := &logv1.Acquire{
		LeaseId: p.cluster.NewID(), Client: class, Class: class, Track: true,
		Charges: []*logv1.Charge{
			authority.Charge(nightlyLimit, "", provider.Requests, 1),
			authority.Charge(nightlyLimit, "", provider.InputTokens, nightly().Task.Input),
			authority.Charge(nightlyLimit, "", provider.OutputTokens, nightly().Task.Output),
		},
	}
	came, eta := p.Real(), time.Duration(0)
	if class == batchClass && p.night.opening > 0 {
		op.Charges = append(op.Charges, authority.Charge(openingLimit, "", provider.Requests, 1))
	}
	p.cluster.Acquire(&authority.Ask{
		Operation: op, MaxWait: patience[class],
		Queued: func(s queue.Status) { eta = s.ETA },
		Done: func(a authority.Answer) {
			if !a.Granted {
				done(false)
				return
			}
			if waited := p.Real() - came; eta > 0 && waited > time.Minute {
				p.etas = append(p.etas, float64(eta)/float64(waited))
			}
			if attempt == 0 {
				granted(p.Real())
			} else {
				p.retries = append(p.retries, p.Real())
			}
			p.call(op, func() { p.task(class, attempt+1, granted, done) }, done)
		},
	})
}

// call spends a lease.
func (p *paced) call(op *logv1.Acquire, again func(), done func(ok bool)) {
	call := nightly().Task
	if sigma := p.night.sigma; sigma > 0 {
		call.Input = int64(float64(call.Input) * math.Exp(sigma*p.Rand.NormFloat64()))
	}
	p.attempts++
	answer := p.model.Ask(p.Real(), call)
	if !answer.OK {
		p.At(nil, provider.RefusalTime, func() {
			p.cluster.Throttled(nightlyLimit, "", answer.RetryAfter)
			p.cluster.Settle(op,
				authority.Used{Dimension: provider.InputTokens}, authority.Used{Dimension: provider.OutputTokens})
			p.At(nil, answer.RetryAfter+p.Between(0, extraMost), again)
		})
		return
	}
	p.admitted++
	p.spent = append(p.spent, spent{p.Real(), call.Input})
	f := p.took(op, done)
	p.At(nil, nightlyTask, func() {
		if f.lost {
			return
		}
		f.over = true
		if p.night.estimated {
			call = nightly().Task
		}
		p.cluster.Settle(op,
			authority.Used{Dimension: provider.Requests, Tokens: 1},
			authority.Used{Dimension: provider.InputTokens, Tokens: call.Input},
			authority.Used{Dimension: provider.OutputTokens, Tokens: call.Output})
		done(true)
	})
}

// perMinute is the input tokens of admitted calls, on average.
func (p *paced) perMinute() float64 {
	total := int64(0)
	for _, s := range p.spent {
		total += s.tokens
	}
	return float64(total) / p.finished.Minutes()
}

// worstMinute is the most input tokens in any minute.
func (p *paced) worstMinute() float64 {
	worst, within, first := int64(0), int64(0), 0
	for _, s := range p.spent {
		within += s.tokens
		for p.spent[first].at <= s.at-time.Minute {
			within -= p.spent[first].tokens
			first++
		}
		worst = max(worst, within)
	}
	return float64(worst)
}
