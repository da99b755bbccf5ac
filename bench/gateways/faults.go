package gateways

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/quorlease/quorlease/bench/storm"
	"github.com/quorlease/quorlease/bench/upstream"
	"github.com/quorlease/quorlease/client"
)

const (
	// electionTime is how long it takes at most until another node leads, and callTime more
	// than an acquire takes from a gateway and back.
	electionTime = time.Second
	callTime     = 100 * time.Millisecond
	// noticeTime is how long a gateway's call waits for an answer, and alertTime how soon the
	// gateway says then that there is none.
	noticeTime = client.DefaultDeadline
	alertTime  = time.Second
	// backTime is how soon after the majority is back gateways ask again.
	backTime = 2 * time.Second
	// awayMost is how long what failed is away.
	awayMost = time.Minute
)

// faults is what goes wrong in a storm, one after the other, and when it did.
type faults struct {
	crowd *crowd
	// span is how long the storm is expected to last.
	span time.Duration
	// gateway is the one that is killed, and bury is called before.
	gateway int
	bury    func()
	// majority: it is lost in the end, too.
	majority bool

	leaderDied, gatewayDied, quorumLost, quorumBack time.Duration
	// alerted is when the first alert after quorumLost came, counted from it.
	alerted time.Duration
}

// play lets it happen: the leader at a quarter, a follower's network at two fifths, a
// gateway at a half, and the majority at seven tenths.
func (f *faults) play() error {
	c := f.crowd
	away := min(awayMost, f.span/20)
	leader, err := c.Leader(c.ctx)
	if err != nil {
		return err
	}
	if !c.until(f.span / 4) {
		return c.ctx.Err()
	}
	f.leaderDied = c.Now()
	if err := c.KillNode(leader); err != nil {
		return err
	}
	if !c.until(f.leaderDied + away) {
		return c.ctx.Err()
	}
	if err := c.StartNode(c.ctx, leader); err != nil {
		return err
	}
	if err := f.cut(f.span*2/5, away, 1); err != nil || !c.until(f.span/2) {
		return cmp.Or(err, c.ctx.Err())
	}
	f.bury()
	f.gatewayDied = c.Now()
	if err := c.KillGateway(f.gateway); err != nil || !f.majority {
		return err
	}
	err = f.cut(f.span*7/10, away, nodes-1)
	f.quorumBack = c.Now() + backTime
	return err
}

// cut takes so many followers' networks away for a while.
func (f *faults) cut(at, away time.Duration, count int) error {
	c := f.crowd
	if !c.until(at) {
		return c.ctx.Err()
	}
	leader, err := c.Leader(c.ctx)
	if err != nil {
		return err
	}
	f.quorumLost = c.Now()
	var followers []int
	for node := range nodes {
		if node != leader && len(followers) < count {
			followers = append(followers, node)
		}
	}
	for _, node := range followers {
		if err := c.Cut(node); err != nil {
			return err
		}
	}
	if count > 1 {
		f.watch(away)
	}
	if !c.until(f.quorumLost + away) {
		return c.ctx.Err()
	}
	for _, node := range followers {
		if err := c.Heal(node); err != nil {
			return err
		}
	}
	return nil
}

const nodes = 3

// aside are the requests that came while there was a majority. What the limit's policy makes
// of the others is not what the authority promises.
func (f *faults) aside(all []sent) (kept []sent) {
	for _, s := range all {
		if s.ended < f.quorumLost || s.began > f.quorumBack {
			kept = append(kept, s)
		}
	}
	return kept
}

// alone is how many requests were served that came while gateways knew that no node answers.
func (f *faults) alone(all []sent) (n int) {
	for _, s := range all {
		if s.ok() && s.began > f.quorumLost+f.alerted && s.began < f.quorumBack-backTime {
			n++
		}
	}
	return n
}

// watch waits for the alert, and no longer than nodes are away.
func (f *faults) watch(away time.Duration) {
	c := f.crowd
	before, _ := c.Alerts()
	f.alerted = away
	for c.Now() < f.quorumLost+away && c.pass(callTime/4) {
		if n, last := c.Alerts(); n > before {
			f.alerted = last - f.quorumLost
			return
		}
	}
}

// over is by how many tokens calls went beyond a bucket: of any stretch of time, the most
// input that was used beyond its rate and burst (G1).
func over(calls []upstream.Call, perMinute, burst float64) float64 {
	calls = slices.Clone(calls)
	slices.SortFunc(calls, func(a, b upstream.Call) int { return cmp.Compare(a.Arrived, b.Arrived) })
	level, most, last := 0.0, 0.0, time.Duration(0)
	for i := range calls {
		level = max(0, level-perMinute*(calls[i].Arrived-last).Minutes()) + float64(calls[i].Estimated.Input)
		most, last = max(most, level), calls[i].Arrived
	}
	return max(0, most-burst)
}

// unserved is how many requests were answered with a no.
func unserved(all []sent) (n int) {
	for i := range all {
		if !all[i].ok() && all[i].status != 0 {
			n++
		}
	}
	return n
}

func nightFaults(ctx context.Context, h *House, o *storm.Outcome) error {
	return h.on(ctx, h.nightSetting(), func(stage Stage) error {
		var f *faults
		n, l, err := h.playNight(ctx, stage, func(n *night) {
			f = &faults{crowd: n.crowd, span: n.span(), gateway: 1, bury: func() { n.gone[1].Store(true) }, majority: true}
			n.fail(f.play())
		})
		if err != nil {
			return err
		}
		lost, stalled := 0, 0.0
		for _, s := range n.all() {
			if s.status == 0 {
				lost++
			}
		}
		for _, wait := range waits(n.of(live), f.leaderDied-callTime, f.leaderDied+electionTime) {
			stalled = max(stalled, wait.Seconds())
		}
		own := f.aside(n.of(live))
		served := answered(n.all())
		h.exactly(o, storm.Unique, int(n.done.Load()), n.tasks)
		h.within(o, orphaned, float64(lost), 1, nightWorkers)
		h.within(o, storm.DoneAgain, float64(len(l.Calls)-served), 0, float64(lost))
		h.exactly(o, storm.ProviderNo, refused(l.Calls), 0)
		h.within(o, overshoot, over(l.Calls, 300_000, nightBurst*taskEstimate), 0, float64(lost)*taskInput)
		h.within(o, storm.InputWorst, worst(l.Calls), none, 325_000+float64(lost)*taskInput)
		h.within(o, storm.StallMax, stalled, 0, (electionTime + callTime + h.Slack).Seconds())
		h.exactly(o, unheard, unserved(own), 0)
		h.liveWaits(o, waits(own, 0, ever))
		h.within(o, alertAfter, f.alerted.Seconds(), 0, (noticeTime + alertTime + h.Slack).Seconds())
		h.within(o, servedAlone, float64(f.alone(n.all())), 1, most)
		h.show(o, storm.BacklogTime, n.finished.Minutes())
		n.picture(o, &l, time.Second, min(n.Now(), 5*time.Minute))
		return nil
	})
}

// fleetFaults is the import with what goes wrong.
func fleetFaults(ctx context.Context, h *House, o *storm.Outcome) error {
	return h.on(ctx, h.fleetSetting(), func(stage Stage) error {
		const dies = 7
		var f *faults
		played, l, err := h.playFleet(ctx, stage, func(p *fleet) {
			jobs := time.Duration(h.part(fleetJobs))
			f = &faults{
				crowd: p.crowd, span: jobs * time.Second / 9, gateway: dies, bury: func() { p.gone.Store(dies + 1) },
			}
			p.fail(f.play())
		})
		if err != nil {
			return err
		}
		lost, stalled := 0, 0.0
		for _, s := range played.all() {
			switch {
			case s.status == 0:
				lost++
			case s.client != importer && s.ok() && s.began >= f.leaderDied-callTime && s.began < f.leaderDied+electionTime:
				stalled = max(stalled, (s.took() - fleetTakes).Seconds())
			}
		}
		jobs := h.part(fleetJobs)
		calls := by(&l, importer)
		takes := float64(jobs-9)/9 + fleetTakes.Seconds()
		h.exactly(o, storm.Unique, len(played.answers), jobs)
		h.within(o, orphaned, float64(lost), 1, 2*fleetJobs/fleetInstances)
		h.within(o, storm.DoneAgain, float64(len(calls)-jobs), 0, float64(lost))
		h.exactly(o, storm.ProviderNo, beyond(calls), 0)
		h.exactly(o, unheard, unserved(played.all()), 0)
		h.within(o, storm.StallMax, stalled, 0, (electionTime + callTime + h.Slack).Seconds())
		h.within(o, storm.Drained, played.drained.Seconds(), takes-3.2, takes+6.8+h.Slack.Seconds())
		h.within(o, storm.OthersP95, quantile(played.served(), 0.95), 2, 2.1+h.Slack.Seconds())
		played.picture(o, &l, 500*time.Millisecond, min(played.Now(), 240*time.Second))
		return nil
	})
}
