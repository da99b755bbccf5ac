package waiting

import (
	"time"

	"google.golang.org/protobuf/proto"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/queue"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// runMax bounds what is proposed at once of one lane.
const runMax = 128

// tryLocked looks at a head that is due, and proposes it, with those behind it
// that can be paid too, or sets when to look again. It is flying in the queue.
func (d *Desk) tryLocked(now time.Duration, w *waiter, a *actions) {
	if place, older := d.olderLocked(w); older {
		d.moveLocked(now, w, place, 0, a)
		return
	}
	acquire := d.keepLocked(now, w.acquire, w)
	plain := acquire == nil
	if plain {
		acquire = w.acquire
	}
	seen := d.look(acquire)
	if seen.final || seen.result.GetGranted() {
		run := d.launchLocked(now, w, nil, a)
		if len(run) > 0 && !seen.final {
			run = d.moreLocked(now, run, acquire, a)
		}
		for _, f := range run {
			f.run = run
		}
		return
	}
	w.last, w.lastAt = seen.result, now
	first := seen.result.GetDenials()[0]
	if place := (queue.Place{Limit: first.GetLimit(), Key: first.GetKey()}); place != w.Place {
		d.moveLocked(now, w, place, time.Duration(first.GetRetryAfter()), a)
		return
	}
	wait := time.Duration(first.GetRetryAfter())
	held := d.sizeUpLocked(now, w, acquire)
	if !plain {
		switch alone := d.look(w.acquire).result; {
		case alone.GetGranted():
			// The tokens are there, and are kept for others.
			wait = held
		case alone != nil:
			// They may have gone when the tokens are there.
			wait = time.Duration(alone.GetDenials()[0].GetRetryAfter())
		}
	}
	d.mu.queue.Denied(now, &w.Waiter, wait)
}

// moreLocked adds to a run those who come after its last and can be paid too, as
// far as the replica says.
func (d *Desk) moreLocked(now time.Duration, run []*flight, acquire *logv1.Acquire, a *actions) []*flight {
	sum := proto.CloneOf(acquire)
	d.config.View(func(m *fsm.Machine, at bucket.Instant) {
		fits := func(next *queue.Waiter) bool {
			for i, c := range next.Costs {
				sum.Charges[i].Amount += c.Tokens
			}
			result, err := m.Peek(at, sum)
			return err == nil && result.GetGranted()
		}
		for len(run) < runMax {
			next := d.mu.queue.More(now, &run[len(run)-1].w.Waiter, fits)
			if next == nil {
				return
			}
			before := len(run)
			if run = d.launchLocked(now, next.Owner.(*waiter), run, a); len(run) == before {
				return
			}
		}
	})
	return run
}

// olderLocked is another place that w charges, where the head of its class has
// waited for longer than w: taking from it would overtake that head.
func (d *Desk) olderLocked(w *waiter) (queue.Place, bool) {
	if w.Sole {
		return queue.Place{}, false
	}
	for _, c := range w.acquire.GetCharges() {
		place := queue.Place{Limit: c.GetLimit(), Key: c.GetKey()}
		class, ok := classOf(d.termsOf(c.GetLimit()), w.acquire.GetClass())
		if !ok || place == w.Place {
			continue
		}
		if head := d.mu.queue.Head(place, class); head != nil && head.Arrived < w.Arrived {
			return place, true
		}
	}
	return queue.Place{}, false
}

// sizeUpLocked looks at the parts of the buckets of a head's place. It tells the
// queue when the class's own part will be full: what overflows from then on is the
// head's (T48). And it returns how long it takes at least until the head can be
// paid beside what it must leave to others, queue.Never where only their going
// helps.
func (d *Desk) sizeUpLocked(now time.Duration, w *waiter, acquire *logv1.Acquire) (wait time.Duration) {
	if len(d.termsOf(w.Place.Limit).Classes) < 2 {
		return time.Millisecond
	}
	wait = time.Millisecond
	d.config.View(func(m *fsm.Machine, at bucket.Instant) {
		in, err := m.Inspect(at, w.Place.Limit, w.Place.Key)
		if err != nil {
			return
		}
		for _, c := range acquire.GetCharges() {
			if c.GetLimit() != w.Place.Limit || c.GetKey() != w.Place.Key {
				continue
			}
			for i := range in.Buckets {
				if b := &in.Buckets[i]; b.Dimension == c.GetDimension() {
					wait = max(wait, d.sizeUpOne(now, w, c, b))
				}
			}
		}
	})
	return wait
}

func (d *Desk) sizeUpOne(now time.Duration, w *waiter, c *logv1.Charge, b *fsm.BucketView) time.Duration {
	free, own := b.Level, fsm.ClassView{}
	for _, class := range b.Classes {
		free -= class.Level
		if class.Name == w.Class {
			own = class
		}
	}
	if fills, ok := d.mu.queue.FillsIn(&w.Waiter, b.Dimension, own.SubBurst-own.Level+own.Debt); ok {
		d.mu.queue.OwnFull(&w.Waiter, b.Dimension, now+fills)
	}
	missing := c.GetAmount() - own.Level - max(0, free-c.GetKeep())
	switch {
	case missing <= 0:
		return 0
	case c.GetKeep() < queue.All:
		return time.Duration(float64(missing) * float64(b.Interval) / float64(max(1, b.Amount)))
	case c.GetAmount() > own.SubBurst:
		return queue.Never
	}
	wait, ok := d.mu.queue.FillsIn(&w.Waiter, b.Dimension, missing)
	if !ok {
		return queue.Never
	}
	return wait
}
