package storm

import (
	"time"

	"github.com/quorlease/quorlease/bench/provider"
)

// nightlyStorms are those of a backfill at night: 200 workers started by one
// clock, beside live tasks, at one account.
func nightlyStorms() []Scenario {
	return []Scenario{
		{
			Slug: "s3-first-wave", Title: "200 workers start at once and try again after a fixed second",
			Text: "Five attempts each, the hint ignored; the provider admits the headroom of 88 tasks a minute and no more.",
			run:  firstWave,
		},
		{
			Slug: "s3-sustained", Title: "the same for five minutes, beside live tasks with the same habits",
			Text: "What failed goes back to the backlog. The provider has a full token bucket, and then one of a second.",
			run:  sustained,
		},
		{
			Slug: "s3-jitter", Title: "the same with random delays and nothing else",
			Text: "200 tasks, tried until they are done, with delays up to 2, 8, 60 and 136 seconds.",
			run:  jitter,
		},
		{
			Slug: "s3-after", Title: "the same night with one limit, a queue and one owner of retries",
			Text: "Three quarters of the provider's limits, a burst of ten tasks, half of it kept for live ones. " +
				"200 workers wait for leases; 6,000 tasks. Then with less and more kept, other providers, other sizes.",
			Twins: []string{"s3-first-wave", "s3-sustained"},
			run:   nightAfter,
		},
		{
			Slug: "s3-faults", Title: "the night after, and a leader, a follower's network and a gateway fail",
			Text: "The leader dies when a quarter is over, with an entry on its way and all workers in its queue; later a " +
				"follower is cut off for ten minutes, and the backfill's gateway dies with all leases that it holds.",
			Twins: []string{"s3-after"},
			run:   nightFaults,
		},
		{
			Slug: "s3-demo", Title: "a burst of 25 at two a second, by the size of the bucket",
			Text: "What is held waits in the queue and leaves it as tokens come.",
			run:  demo,
		},
	}
}

const (
	nightlyWorkers = 200
	// nightlyTask is how long the provider works on one.
	nightlyTask = 6 * time.Second
	liveMinute  = 72
)

// worker is the client of the incident.
func worker(w world, model provider.Model, t *tally) *naive {
	return &naive{
		world: w, model: model, call: nightly().Task, most: 5,
		refusal: provider.RefusalTime, success: nightlyTask, delay: fixed(time.Second), seen: t.of(w),
	}
}

func nobody(bool) {}

func firstWave(seed uint64, o *Outcome) {
	const wave = 5 * time.Second
	play := func(model provider.Model, live bool, refusal time.Duration) (t tally) {
		w := newWorld(seed)
		n := worker(w, model, &t)
		n.refusal = refusal
		for range nightlyWorkers {
			w.At(nil, 0, func() { n.try(0, nobody) })
		}
		if live {
			people := worker(w, model, &tally{})
			w.even(liveMinute, wave, func() { people.try(0, nobody) })
		}
		w.until(wave - 1)
		return t
	}
	plan := nightly()
	paper := play(o.watch(provider.NewFluid(int64(plan.Headroom())), 100*time.Millisecond, wave), false, 0)
	o.exactly(Attempts, paper.attempts, 988)
	o.exactly(Done, paper.admitted, 7)
	o.within(PerDone, paper.perDone(), 136, 143)
	o.within(RefusedPart, paper.refused(), 99.2, 99.4)
	empty := play(provider.NewBuckets(plan.Limits, provider.Options{Empty: true}), true, provider.RefusalTime)
	o.exactly(EmptyAttempts, empty.attempts, 991)
	o.exactly(EmptyDone, empty.admitted, 7)
	full := play(provider.NewBuckets(plan.Limits, provider.Options{}), true, provider.RefusalTime)
	o.exactly(FullAttempts, full.attempts, 351)
	o.exactly(FullDone, full.admitted, 167)
}

func sustained(seed uint64, o *Outcome) {
	const length = 5 * time.Minute
	play := func(model provider.Model) (workers tally, live float64) {
		w := newWorld(seed)
		n := worker(w, model, &workers)
		var work func()
		work = func() {
			n.try(0, func(ok bool) {
				if ok {
					work()
				} else {
					w.At(nil, time.Second, work)
				}
			})
		}
		for range nightlyWorkers {
			w.At(nil, 0, work)
		}
		ended, served := 0, 0
		people := worker(w, model, &tally{})
		w.poisson(liveMinute, length, func() {
			people.try(0, func(ok bool) {
				ended++
				if ok {
					served++
				}
			})
		})
		w.until(length)
		return workers, 100 * ratio(served, ended)
	}
	limits := nightly().Limits
	workers, live := play(o.watch(provider.NewBuckets(limits, provider.Options{}), time.Second, length))
	o.show(Attempts, float64(workers.attempts))
	o.show(Done, float64(workers.admitted))
	o.within(PerDone, workers.perDone(), 50, open)
	o.within(RefusedPart, workers.refused(), 97.5, 99)
	o.within(LivePart, live, -open, 75)
	o.show(HerdNow, Herd(workers.retries))
	workers, live = play(provider.NewBuckets(limits, provider.Options{Capacity: time.Second}))
	o.within(SecondPerDone, workers.perDone(), 50, open)
	o.within(SecondLivePart, live, -open, 75)
}

// spreads are the measures of jitter by the longest delay in seconds; 0 is a
// fixed second.
var spreads = []struct {
	seconds int
	measure Measure
	want    float64
}{
	{0, "attempts_per_done_fixed", 68.3},
	{2, "attempts_per_done_2s", 66.5},
	{8, "attempts_per_done_8s", 17.9},
	{60, "attempts_per_done_60s", 3.4},
	{136, "attempts_per_done_136s", 2.4},
}

func jitter(seed uint64, o *Outcome) {
	plan := nightly()
	for _, spread := range spreads {
		w := newWorld(seed)
		var t tally
		// A provider that saves up two seconds' headroom for whoever comes.
		model := provider.NewBuckets(provider.Limits{Requests: int64(plan.Headroom())},
			provider.Options{Empty: true, Capacity: 2 * time.Second})
		n := worker(w, model, &t)
		n.most = 0
		if spread.seconds > 0 {
			n.delay = func(int) time.Duration { return w.Between(0, time.Duration(spread.seconds)*time.Second) }
		}
		for range nightlyWorkers {
			w.At(nil, 0, func() { n.try(0, nobody) })
		}
		w.until(time.Hour)
		o.within(spread.measure, t.perDone(), 0.9*spread.want, 1.1*spread.want)
		switch spread.seconds {
		case 0:
			o.within(HerdFixed, Herd(t.retries), 18, 23)
		case 2:
			o.within(HerdJitter, Herd(t.retries), 2.5, 4.5)
		}
	}
}
