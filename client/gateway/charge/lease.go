package charge

import (
	"context"
	"errors"
	"time"

	"github.com/quorlease/quorlease/client"
)

const (
	// renewMax is what a lease without slots is renewed for at most. Each renewal is for
	// twice as long as the one before: its tokens are spent either way if nobody comes back.
	renewMax = 10 * time.Minute
	// repeatPause is how long a settlement waits that nobody has answered, and repeatsMax how
	// often it is tried in all.
	repeatPause = 500 * time.Millisecond
	repeatsMax  = 4
)

// lease is one that was asked for, until it was settled.
type lease struct {
	client.Lease
	slots bool
	began time.Duration
	// ttl is what it is renewed for, ends when it does. sequence numbers renewals. They belong
	// to whoever has the lease: the desk's timetable, or a worker.
	ttl, ends time.Duration
	sequence  uint64

	// usage is what to settle, or release to. They are written before done is.
	usage    []client.Usage
	released bool
	tries    int

	// What follows is the timetable's, under its mutex. done: the call has ended. due is
	// when something is to be done, at where in the heap it is, -1 for nowhere.
	done bool
	due  time.Duration
	at   int
}

// hold keeps a lease that was granted: it is renewed until its call ends.
func (d *Desk) hold(now time.Duration, granted client.Lease) *lease {
	l := &lease{Lease: granted, began: now, ends: d.clock.At(granted.Ends), at: -1}
	for i := range granted.Charges {
		l.slots = l.slots || granted.Charges[i].Dimension == slots
	}
	l.ttl = max(l.ends-now, time.Millisecond)
	d.counts.leases.Add(1)
	if granted.Tracked && !granted.Local {
		d.times.set(l, now+l.ttl/2, false)
	}
	return l
}

// renew prolongs a lease, and says when to do so again.
func (d *Desk) renew(ctx context.Context, l *lease) {
	if d.times.isDone(l) {
		return
	}
	now := d.clock.Now()
	if now-l.began > d.config.CallMax {
		d.counts.abandoned.Add(1)
		return
	}
	if !l.slots {
		l.ttl = min(2*l.ttl, max(renewMax, l.ttl))
	}
	l.sequence++
	s, err := d.config.Authority.Renew(ctx, l.Lease, client.Renewal{TTL: l.ttl, Sequence: l.sequence})
	switch {
	case err == nil:
		d.counts.renewed.Add(1)
		l.ends = d.clock.At(s.Ends)
		// Slots are held for as long as their own limit says, which the first answer tells.
		l.ttl = max(l.ttl, l.ends-now)
	case errors.Is(err, client.ErrUnanswered) && ctx.Err() == nil:
		d.counts.unanswered.Add(1)
	case d.times.isDone(l):
		// Its end was faster.
		return
	default:
		// It has ended, or this desk does.
		d.counts.lost.Add(1)
		return
	}
	now = d.clock.Now()
	d.times.set(l, now+max((l.ends-now)/2, restMin), false)
}

// settle ends a lease with what was used.
func (d *Desk) settle(l *lease, used map[string]int64) {
	for name, n := range used {
		for i := range l.Charges {
			if c := &l.Charges[i]; c.Dimension == name && name != slots {
				l.usage = append(l.usage, client.Usage{Dimension: name, Used: max(0, min(n, amountMax))})
				break
			}
		}
	}
	d.finish(l)
}

// release ends a lease of which nothing was used.
func (d *Desk) release(l *lease) {
	l.released = true
	d.finish(l)
}

// finish has the end of a lease told by a worker.
func (d *Desk) finish(l *lease) {
	d.counts.leases.Add(-1)
	if !l.Tracked || l.Local {
		return
	}
	d.times.end(l)
	d.hand(job{lease: l})
}

// tell tells the authority how a lease has ended.
func (d *Desk) tell(ctx context.Context, l *lease) {
	var err error
	if l.released {
		_, err = d.config.Authority.Release(ctx, l.Lease)
	} else {
		_, err = d.config.Authority.Settle(ctx, l.Lease, l.usage...)
	}
	l.tries++
	switch {
	case err == nil:
		d.counts.settled.Add(1)
	case errors.Is(err, client.ErrUnanswered) && ctx.Err() == nil && l.tries < repeatsMax:
		d.counts.unanswered.Add(1)
		d.times.set(l, d.clock.Now()+repeatPause<<(l.tries-1), true)
	default:
		d.counts.lost.Add(1)
	}
}
