package storm

import (
	"math"
	"slices"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/bench/provider"
	"github.com/quorlease/quorlease/bench/storm/authority"
)

// variantTasks is the backfill of a variant, of which only waits are looked at.
const variantTasks = 1500

// nights is how many are played: what one in a hundred live tasks waits is mostly
// chance in a single one.
const nights = 4

func nightAfter(seed uint64, o *Outcome) {
	plan := nightly()
	all := &paced{}
	for i := range uint64(nights) {
		first := o
		if i > 0 {
			first = nil
		}
		all.join(playNight(seed+i<<32, first, night{tasks: backlogTasks, reserve: 5}))
	}
	minutes := all.finished.Minutes()
	o.within(PerDone, ratio(all.attempts, all.admitted), 1, 1.01)
	o.within(RefusedPart, all.refused(), 0, 0.1)
	o.exactly(ProviderNo, all.attempts-all.admitted, 0)
	first := o.Timeline.Admitted[0] + o.Timeline.Refused[0]
	o.within(FirstSecond, float64(first), 1, burstTasks+120/60)
	o.within(LivePart, 100*ratio(all.liveDone, all.liveEnded), 100, 100)
	o.show(LiveP50, quantile(all.live, 0.5).Seconds())
	o.within(LiveP99, quantile(all.live, 0.99).Seconds(), 0, 0.25)
	o.within(LiveMax, quantile(all.live, 1).Seconds(), 0, 5)
	// As many live tasks as reckoned: what chance brings more or fewer of them moves
	// a night by two minutes.
	even := playNight(seed, nil, night{tasks: backlogTasks, reserve: 5, even: true})
	o.within(BacklogTime, even.finished.Minutes(), 123, 127)
	o.within(BacklogRate, backlogTasks/even.finished.Minutes(), 47.2, 48.8)
	o.within(BacklogChance, minutes/nights, 121, 129)
	o.within(InputMean, all.perMinute(), 299_200, 300_800)
	o.within(InputPart, 100*all.perMinute()/float64(plan.Limits.Input), 74.8, 75.2)
	o.within(OutputPart, plan.Share(provider.OutputTokens, float64(all.admitted)/minutes), 44.8, 45.2)
	o.within(InputWorst, all.worst, -open, 325_000)
	o.within(ETAOff, all.etaOff(), 0, 10)
	o.within(HerdNow, Herd(all.retries), 0, 0)

	for _, v := range []struct {
		reserve   int64
		measure   Measure
		low, high float64
	}{
		{0, ReserveNone, 2, 3.3},
		{2, ReserveTwo, 1, 2.4},
		{8, ReserveEight, 0, 0.1},
	} {
		p := playNight(seed, nil, night{tasks: variantTasks, reserve: v.reserve})
		o.within(v.measure, quantile(p.live, 0.99).Seconds(), v.low, v.high)
		if v.reserve == 0 {
			// Where free tokens were not kept for live tasks that wait it would be twice
			// as long.
			o.within(ReserveNoneP50, quantile(p.live, 0.5).Seconds(), 0.3, 0.7)
		}
	}
	empty := playNight(seed, nil, night{tasks: variantTasks, options: provider.Options{Empty: true}})
	o.within(EmptyNo, float64(empty.attempts-empty.admitted), 0, 15)
	second := playNight(seed, nil, night{tasks: variantTasks, options: provider.Options{Capacity: time.Second}})
	o.within(SecondNo, float64(second.attempts-second.admitted), 0, 15)
	sizes := playNight(seed, nil, night{tasks: variantTasks, reserve: 5, sigma: 0.2})
	o.within(SizesInput, sizes.perMinute(), 297_000, 309_000)
	o.within(SizesNo, float64(sizes.attempts-sizes.admitted), 0, 0)
}

// join adds what another night came to.
func (p *paced) join(other *paced) {
	p.attempts += other.attempts
	p.admitted += other.admitted
	p.retries = append(p.retries, other.retries...)
	p.spent = append(p.spent, other.spent...)
	p.live = append(p.live, other.live...)
	p.etas = append(p.etas, other.etas...)
	p.liveEnded += other.liveEnded
	p.liveDone += other.liveDone
	p.finished += other.finished
	p.worst = max(p.worst, other.worstMinute())
}

// etaOff is by how much the first estimate of the wait was wrong, in percent of
// the wait: the median.
func (p *paced) etaOff() float64 {
	if len(p.etas) == 0 {
		return 0
	}
	off := make([]float64, len(p.etas))
	for i, part := range p.etas {
		off[i] = 100 * math.Abs(part-1)
	}
	slices.Sort(off)
	return off[len(off)/2]
}

const demoTasks = 25

// demo is the table that the incident report ends with: a burst of 25 in the
// first second, two a second, by the size of the bucket.
func demo(seed uint64, o *Outcome) {
	for _, row := range demoRows {
		w := newWorld(seed)
		limit := authority.Limit("demo", authority.Dimension(provider.Requests, 2, time.Second, row.capacity))
		cluster := authority.New(w.Stage, 3, &logv1.ApplyLimits{Limits: []*logv1.Limit{limit}})
		admitted := 0
		w.At(nil, time.Second, func() {
			for range demoTasks {
				cluster.Acquire(&authority.Ask{
					Operation: &logv1.Acquire{Charges: []*logv1.Charge{authority.Charge("demo", "", provider.Requests, 1)}},
					MaxWait:   time.Minute,
					Done:      func(authority.Answer) { admitted++ },
				})
			}
		})
		// A tenth of a second after each full one: entries have committed then.
		at := func(second int) time.Duration { return time.Duration(second)*time.Second + 100*time.Millisecond }
		w.until(at(1))
		o.exactly(row.admits, admitted, row.wantAdmits)
		o.exactly(row.holds, cluster.Waiting(), demoTasks-row.wantAdmits)
		for i, held := range row.later {
			w.until(at(2 + i))
			o.exactly(demoLater[i], cluster.Waiting(), held)
		}
	}
}

// demoLater are how many are held at the end of the seconds from the second on.
var demoLater = [...]Measure{"held_2s", "held_3s", "held_4s", "held_5s", "held_6s", "held_7s", "held_8s", "held_9s"}

var demoRows = []struct {
	capacity      int64
	admits, holds Measure
	wantAdmits    int
	later         []int
}{
	{10, "admitted_10", "held_10", 10, []int{13, 11, 9, 7, 5, 3, 1, 0}},
	{15, "admitted_15", "held_15", 15, nil},
	{20, "admitted_20", "held_20", 20, nil},
	{25, "admitted_25", "held_25", 25, nil},
}
