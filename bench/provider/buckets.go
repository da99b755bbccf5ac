package provider

import "time"

// unit is how many units a token has: a rate of so many tokens a minute is as
// many units a nanosecond, and nothing is rounded.
const unit = int64(time.Minute)

// Options are how a provider fills its buckets.
type Options struct {
	// Capacity is how much time's worth a bucket holds. 0: a minute.
	Capacity time.Duration
	// Empty: the buckets are empty at the start, because somebody else has just
	// used them up.
	Empty bool
	// Seconds: no more than a sixtieth of the requests of a minute, rounded up, in
	// any second of the clock.
	Seconds bool
}

// Buckets are token buckets that fill continuously.
type Buckets struct {
	limits  Limits
	options Options
	// filled is when the levels were right; levels are in units.
	filled time.Duration
	levels [3]int64
	// second is the one that is counted, and inSecond how many it has had.
	second   time.Duration
	inSecond int64
}

// NewBuckets is an account with these limits at time 0.
func NewBuckets(limits Limits, options Options) *Buckets {
	if options.Capacity <= 0 {
		options.Capacity = time.Minute
	}
	b := &Buckets{limits: limits, options: options, second: -1}
	if !options.Empty {
		b.levels = b.most()
	}
	return b
}

// rates are by dimension, in units a nanosecond.
func (b *Buckets) rates() [3]int64 {
	return [3]int64{b.limits.Requests, b.limits.Input, b.limits.Output}
}

func (b *Buckets) most() (units [3]int64) {
	for i, rate := range b.rates() {
		units[i] = rate * int64(b.options.Capacity)
	}
	return units
}

// Ask takes the call out of every bucket, or nothing out of any.
func (b *Buckets) Ask(now time.Duration, call Call) Answer {
	b.fill(now)
	wait, binding, never := b.wait(call)
	if second := b.untilSecond(now); second > wait {
		wait, binding = second, Requests
	}
	if never {
		return Answer{Binding: binding, Remaining: b.remaining()}
	}
	if wait > 0 {
		return Answer{RetryAfter: wholeSeconds(wait), Binding: binding, Remaining: b.remaining()}
	}
	for i, n := range uses(call) {
		if b.rates()[i] > 0 {
			b.levels[i] -= n * unit
		}
	}
	b.inSecond++
	return Answer{OK: true, Remaining: b.remaining()}
}

var names = [3]string{Requests, InputTokens, OutputTokens}

func uses(call Call) [3]int64 { return [3]int64{1, call.Input, call.Output} }

func (b *Buckets) fill(now time.Duration) {
	// A bucket is full after its capacity, whatever is left in it.
	passed := int64(min(max(0, now-b.filled), b.options.Capacity))
	most := b.most()
	for i, rate := range b.rates() {
		b.levels[i] = min(b.levels[i]+rate*passed, most[i])
	}
	b.filled = now
}

// wait is how long the buckets need until the call fits, and which of them needs
// it. never: it is larger than a bucket.
func (b *Buckets) wait(call Call) (wait time.Duration, binding string, never bool) {
	most := b.most()
	for i, n := range uses(call) {
		rate := b.rates()[i]
		if rate == 0 {
			continue
		}
		if n*unit > most[i] {
			return 0, names[i], true
		}
		if d := time.Duration(ceil(max(0, n*unit-b.levels[i]), rate)); d > wait {
			wait, binding = d, names[i]
		}
	}
	return wait, binding, false
}

// untilSecond is how long it is until the next second, where this one is full.
func (b *Buckets) untilSecond(now time.Duration) time.Duration {
	if !b.options.Seconds || b.limits.Requests == 0 {
		return 0
	}
	if second := now / time.Second; second != b.second {
		b.second, b.inSecond = second, 0
	}
	if b.inSecond < ceil(b.limits.Requests, 60) {
		return 0
	}
	return (b.second+1)*time.Second - now
}

func (b *Buckets) remaining() Remaining {
	var left [3]int64
	for i, rate := range b.rates() {
		left[i] = -1
		if rate > 0 {
			left[i] = b.levels[i] / unit
		}
	}
	return Remaining{Requests: left[0], Input: left[1], Output: left[2]}
}
