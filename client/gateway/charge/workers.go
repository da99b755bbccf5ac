package charge

import "context"

// job is something to be asked of the authority for a lease: to renew it, or to tell how
// it has ended.
type job struct {
	*lease
	renew bool
}

// hand gives a job to the workers. Where too many wait a renewal comes later, and what has
// ended does so by itself.
func (d *Desk) hand(j job) {
	d.handing.RLock()
	defer d.handing.RUnlock()
	if !d.closed.Load() {
		select {
		case d.jobs <- j:
			return
		default:
		}
	}
	if j.renew {
		now := d.clock.Now()
		d.times.set(j.lease, now+max((j.ends-now)/2, restMin), false)
		return
	}
	d.counts.dropped.Add(1)
}

// worker does what is handed to it, and when the desk is closed what still waits.
func (d *Desk) worker(ctx context.Context) {
	for {
		select {
		case j := <-d.jobs:
			d.do(ctx, j)
		case <-d.closing:
			d.drain(ctx)
			return
		}
	}
}

// drain tells what is left to be told. Calls that go on do so without a desk.
func (d *Desk) drain(ctx context.Context) {
	for {
		select {
		case j := <-d.jobs:
			switch {
			case j.renew:
			case ctx.Err() != nil:
				d.counts.dropped.Add(1)
			default:
				d.tell(ctx, j.lease)
			}
		default:
			return
		}
	}
}

func (d *Desk) do(ctx context.Context, j job) {
	if j.renew {
		d.renew(ctx, j.lease)
	} else {
		d.tell(ctx, j.lease)
	}
}
