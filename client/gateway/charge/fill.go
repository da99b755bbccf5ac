package charge

import (
	"context"
	"sync"
	"time"

	"github.com/quorlease/quorlease/client"
)

const (
	// fillers is how many first blocks are asked for at once, and fillsMax how many wait.
	fillers  = 4
	fillsMax = 64
)

// fill has a first block asked for in the background, unless somebody does so already.
func (d *Desk) fill(t *tap, n int64) {
	if t.filling.Swap(true) {
		return
	}
	t.need.Store(n)
	select {
	case d.fills <- t:
	default:
		t.filling.Store(false)
	}
}

// filler asks for first blocks, so that no call waits for one after the other.
func (d *Desk) filler(ctx context.Context) {
	for {
		select {
		case t := <-d.fills:
			d.first(t)
			t.filling.Store(false)
		case <-ctx.Done():
			return
		}
	}
}

// first makes a limiter hold something: what it takes goes back into the block at once.
func (d *Desk) first(t *tap) {
	if d.config.Authority.FailOpen() {
		return
	}
	now := d.clock.Now()
	if t.limiter.Load() == nil && !d.open(t) {
		t.found(now, false)
		return
	}
	if permit, ok := t.take(now, t.need.Load()); ok {
		t.settle(permit, 0)
	}
}

// open gives a tap its limiter; false where there are too many, it was forgotten or the
// desk is closed.
func (d *Desk) open(t *tap) bool {
	d.taps.mu.Lock()
	defer d.taps.mu.Unlock()
	if d.closed.Load() || t.gone.Load() || d.taps.open.Load() >= int64(d.config.Limiters) {
		return false
	}
	l, err := d.config.Authority.Limiter(client.LimiterConfig{
		Limit: t.limit, Key: t.key, Dimension: t.dimension, Class: t.class,
	})
	if err != nil {
		return false
	}
	t.limiter.Store(l)
	d.taps.open.Add(1)
	return true
}

// shut closes the limiter of a tap, unless a permit of it has not ended: what such a one
// uses beyond its estimate could not be told any more.
func (d *Desk) shut(t *tap, must bool) {
	d.taps.mu.Lock()
	l := t.limiter.Swap(nil)
	if l != nil && t.live.Load() > 0 && !must {
		t.limiter.Store(l)
		l = nil
	}
	d.taps.mu.Unlock()
	if l == nil {
		return
	}
	d.taps.open.Add(-1)
	// Always nil: what it can't give back ends by itself.
	_ = l.Close()
}

// shutAll closes every limiter at once.
func (d *Desk) shutAll() {
	var shut sync.WaitGroup
	for _, t := range d.taps.all() {
		shut.Go(func() { d.shut(t, true) })
	}
	shut.Wait()
}

// sweeper forgets what was not used for long.
func (d *Desk) sweeper(ctx context.Context) {
	tick := time.NewTicker(d.config.Idle / 2)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		now := d.clock.Now()
		d.plans.sweep(now - max(d.config.Idle, 2*d.config.PlanLife))
		for _, t := range d.taps.sweep(now - d.config.Idle) {
			if ctx.Err() != nil {
				return
			}
			d.shut(t, false) //nolint:contextcheck // Closing has its own time, that of the client's CloseWithin.
		}
	}
}
