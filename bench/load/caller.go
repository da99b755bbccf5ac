package load

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/quorlease/quorlease/bench/stat"
)

// caller is one of them. Everything in it is its goroutine's until that has ended.
type caller struct {
	drive    *drive
	asker    Asker
	keys     *stat.Chooser
	schedule *stat.Schedule // nil in a closed loop
	start    time.Time
	timer    *time.Timer

	granted, denied, failed, local, escrow, backlog int64
	failures                                        map[string]int64
	// latencies are shared with others.
	latencies *stat.Latencies
}

func (d *drive) newCaller(s Side, index int) (*caller, error) {
	asker, err := s.Asker(index)
	if err != nil {
		return nil, err
	}
	seed := rand.NewPCG(d.config.Seed, uint64(index))
	keys, err := stat.NewChooser(d.config.Distribution, d.config.Keys, seed)
	if err != nil {
		return nil, err
	}
	c := &caller{
		drive: d, asker: asker, keys: keys, timer: time.NewTimer(time.Hour),
		failures: map[string]int64{},
	}
	if d.config.Rate > 0 {
		c.schedule, err = stat.NewSchedule(d.config.Arrivals, d.config.Rate, d.config.Callers, index, seed)
	}
	return c, err
}

func (c *caller) run(ctx context.Context) {
	defer c.timer.Stop()
	for {
		intended, ok := c.next(ctx)
		if !ok {
			return
		}
		key := c.keys.Next()
		sent := time.Now()
		if c.schedule == nil {
			intended = sent
		}
		said, err := c.asker.Ask(ctx, key)
		ended := time.Now()
		if err != nil && ctx.Err() != nil {
			c.cutOff(intended, ended)
			return
		}
		if said.Granted && !said.Local && c.drive.config.Grant != nil {
			c.drive.config.Grant(key, sent, ended)
		}
		c.count(intended, ended, said, err)
		if err != nil {
			_ = sleep(ctx, failurePause)
		}
	}
}

// next waits for the next start. It is when the call was meant to start, however
// late that is: what a slow answer holds up is not left out.
func (c *caller) next(ctx context.Context) (intended time.Time, ok bool) {
	if c.schedule == nil {
		return time.Time{}, ctx.Err() == nil
	}
	intended = c.start.Add(c.schedule.Next())
	if wait := time.Until(intended); wait > 0 {
		c.timer.Reset(wait)
		select {
		case <-c.timer.C:
		case <-ctx.Done():
			return intended, false
		}
	}
	if ctx.Err() != nil {
		c.cutOff(intended, time.Now())
		return intended, false
	}
	return intended, true
}

// cutOff counts what was due when the round ended: one that has waited for longer
// than a call may take has failed, the others of an open loop are a backlog.
func (c *caller) cutOff(intended, ended time.Time) {
	if ended.Sub(intended) > c.drive.config.Timeout {
		c.failed++
		c.failures["UNANSWERED"]++
	}
	if c.schedule == nil {
		return
	}
	for at := intended; at.Before(c.drive.until); at = c.start.Add(c.schedule.Next()) {
		c.backlog++
	}
}

// count counts what ended inside the measured part.
func (c *caller) count(intended, ended time.Time, said Answer, err error) {
	if ended.Before(c.drive.from) || !ended.Before(c.drive.until) {
		return
	}
	at := &c.drive.slots[ended.Sub(c.drive.from)/SlotLength]
	switch {
	case err != nil:
		c.failed++
		c.failures[c.drive.config.Reason(err)]++
		at.Failed.Add(1)
		return
	case said.Granted:
		c.granted++
		at.Granted.Add(1)
	default:
		c.denied++
		at.Denied.Add(1)
	}
	if said.Local {
		c.local++
		at.Local.Add(1)
	}
	if said.Escrow {
		c.escrow++
	}
	c.latencies.Record(ended.Sub(intended))
}
