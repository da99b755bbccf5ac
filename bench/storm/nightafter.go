package storm

import (
	"math"
	"slices"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/bench/provider"
	"github.com/quorlease/quorlease/bench/storm/authority"
)

// The ranges of a whole night's backlog, in minutes, and of a live task's wait: an
// independent simulation has nights of 124.4 to 126.3 minutes.
const (
	nightLeast, nightMost = 124.4, 126.3
	liveWaitMost          = 0.25
)

func nightAfter(seed uint64, o *Outcome) {
	plan := nightly()
	p := playNight(seed, o, night{tasks: backlogTasks, reserve: 5})
	minutes := p.finished.Minutes()
	o.within(PerDone, p.perDone(), 1, 1.0007)
	o.within(RefusedPart, p.refused(), 0, 0.1)
	o.exactly(ProviderNo, p.attempts-p.admitted, 0)
	first := o.Timeline.Admitted[0] + o.Timeline.Refused[0]
	o.within(FirstSecond, float64(first), 1, burstTasks+120/60)
	o.within(LivePart, 100*ratio(p.liveDone, p.liveEnded), 100, 100)
	o.show(LiveP50, quantile(p.live, 0.5).Seconds())
	o.within(LiveP99, quantile(p.live, 0.99).Seconds(), 0, liveWaitMost)
	o.within(LiveMax, quantile(p.live, 1).Seconds(), 0, 3)
	o.within(BacklogTime, minutes, nightLeast, nightMost)
	o.within(BacklogRate, backlogTasks/minutes, 47.5, 48.2)
	o.within(InputMean, p.perMinute(), 299_200, 300_800)
	o.within(InputPart, 100*p.perMinute()/float64(plan.Limits.Input), 74.8, 75.2)
	o.within(OutputPart, plan.Share(provider.OutputTokens, float64(p.admitted)/minutes), 44.8, 45.2)
	o.within(InputWorst, p.worstMinute(), -open, 325_000)
	o.within(ETAOff, p.etaOff(), 0, 10)
	o.within(HerdNow, Herd(p.retries), 0, 0)
	otherReserves(seed, o)
	otherArrivals(seed, o)
	otherProviders(seed, o)
	otherSizes(seed, o)
}

// otherReserves are nights with less and more of the burst kept for live tasks.
func otherReserves(seed uint64, o *Outcome) {
	for _, v := range []struct {
		reserve   int64
		measure   Measure
		low, high float64
	}{
		{0, ReserveNone, 2.2, 2.9},
		{2, ReserveTwo, 1.2, 1.9},
		{8, ReserveEight, 0, 0.1},
	} {
		p := playNight(seed, nil, night{tasks: backlogTasks, reserve: v.reserve})
		o.within(v.measure, quantile(p.live, 0.99).Seconds(), v.low, v.high)
		switch v.reserve {
		case 0:
			// Where free tokens were not kept for live tasks that wait it would be twice
			// as long.
			o.within(ReserveNoneP50, quantile(p.live, 0.5).Seconds(), 0.42, 0.52)
		case 8:
			o.within(EightMax, quantile(p.live, 1).Seconds(), 0, 1.6)
			o.within(EightTime, p.finished.Minutes(), nightLeast, nightMost)
		}
	}
}

// otherArrivals are nights with live tasks at equal distances, with as many of them
// as chance brings, and one whose backfill begins with next to nothing.
func otherArrivals(seed uint64, o *Outcome) {
	even := playNight(seed, nil, night{tasks: backlogTasks, even: true})
	o.within(EvenTime, even.finished.Minutes(), 124.6, 125)
	o.within(EvenP99, quantile(even.live, 0.99).Seconds(), 0.3, 0.36)
	chance := playNight(seed, nil, night{tasks: backlogTasks, reserve: 5, chance: true})
	// All tasks at two a second, but for the burst.
	reckoned := float64(backlogTasks+len(chance.live)-burstTasks) / paceTasks
	o.within(BacklogChance, chance.finished.Minutes()-reckoned, 0, 0.3)
	slow := playNight(seed, nil, night{tasks: backlogTasks, reserve: 5, opening: 10 * time.Minute, even: true})
	o.within(SlowTime, slow.finished.Minutes(), 129.4, 130.4)
}

// partTasks is the backfill of a night of which only the beginning matters.
const partTasks = 1500

// otherProviders are nights at providers that hold little or nothing at first. The
// limit reopens over ten seconds.
func otherProviders(seed uint64, o *Outcome) {
	refused := func(reserve int64, options provider.Options) float64 {
		p := playNight(seed, nil, night{tasks: partTasks, reserve: reserve, options: options, ramp: 10 * time.Second})
		return float64(p.attempts - p.admitted)
	}
	second := provider.Options{Capacity: time.Second}
	o.within(EmptyNo, refused(0, provider.Options{Empty: true}), 8, 10)
	o.within(SecondNo, refused(0, second), 8, 10)
	// What is kept for live tasks comes at once when they do, and is more than such a
	// provider holds.
	o.show(SecondKeptNo, refused(5, second))
}

// otherSizes are nights in which tasks are larger and smaller than estimated, and on
// average 2 % larger.
func otherSizes(seed uint64, o *Outcome) {
	settled := playNight(seed, nil, night{tasks: backlogTasks, reserve: 5, sigma: 0.2})
	o.within(SizesInput, settled.perMinute(), 299_200, 300_800)
	o.within(SizesNo, float64(settled.attempts-settled.admitted), 0, 0)
	estimated := playNight(seed, nil, night{tasks: backlogTasks, reserve: 5, sigma: 0.2, estimated: true})
	o.within(EstimatedInput, estimated.perMinute(), 306_000*0.995, 306_000*1.005)
	o.within(EstimatedNo, float64(estimated.attempts-estimated.admitted), 0, 0)
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
