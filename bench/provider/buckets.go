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
	// FailuresCount: what is refused takes one request out all the same, as far as
	// there is one. Whoever asks without a pause stays refused.
	FailuresCount bool
}

// Buckets are token buckets that fill continuously.
type Buckets struct {
	limits  Limits
	options Options
	// filled is when the levels were right; levels are in units.
	filled time.Duration
	levels [3]int64
	window *Window
}

// NewBuckets is an account with these limits at time 0.
func NewBuckets(limits Limits, options Options) *Buckets {
	if options.Capacity <= 0 {
		options.Capacity = time.Minute
	}
	b := &Buckets{limits: limits, options: options}
	if options.Seconds {
		b.window = NewWindow(limits.Requests, time.Second)
	}
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
	wait, binding, never := b.untilFits(now, call)
	if never {
		b.failed()
		return Answer{Binding: binding, Remaining: b.remaining()}
	}
	if wait > 0 {
		b.failed()
		// What the refusal took has to come back as well.
		wait, binding, _ = b.untilFits(now, call)
		return Answer{RetryAfter: wholeSeconds(wait), Binding: binding, Remaining: b.remaining()}
	}
	for i, n := range uses(call) {
		if b.rates()[i] > 0 {
			b.levels[i] -= n * unit
		}
	}
	b.window.Count(now)
	return Answer{OK: true, Remaining: b.remaining()}
}

// untilFits is the longer of what the buckets and the window of requests need.
func (b *Buckets) untilFits(now time.Duration, call Call) (wait time.Duration, binding string, never bool) {
	wait, binding, never = b.wait(call)
	if next := b.window.Wait(now); next > wait {
		wait, binding = next, Requests
	}
	return wait, binding, never
}

// failed takes one request for a refusal, where the provider counts those.
func (b *Buckets) failed() {
	if b.options.FailuresCount && b.limits.Requests > 0 {
		b.levels[0] = max(min(0, b.levels[0]), b.levels[0]-unit)
	}
}

// Settle corrects what was taken by what became of it: more is taken, if need be
// into debt, and less is given back. more has the difference, which may be
// negative.
func (b *Buckets) Settle(now time.Duration, more Call) {
	b.fill(now)
	most := b.most()
	for i, n := range [3]int64{0, more.Input, more.Output} {
		if b.rates()[i] > 0 {
			b.levels[i] = min(b.levels[i]-n*unit, most[i])
		}
	}
}

// State is what the headers of an answer are made from.
func (b *Buckets) State(now time.Duration) State {
	b.fill(now)
	var full [3]time.Duration
	for i, rate := range b.rates() {
		if rate > 0 {
			full[i] = time.Duration(ceil(b.most()[i]-b.levels[i], rate))
		}
	}
	return State{
		Limits: b.limits, Remaining: b.remaining(),
		FullRequests: full[0], FullInput: full[1], FullOutput: full[2],
	}
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

func (b *Buckets) remaining() Remaining {
	var left [3]int64
	for i, rate := range b.rates() {
		left[i] = -1
		if rate > 0 {
			left[i] = max(0, b.levels[i]) / unit
		}
	}
	return Remaining{Requests: left[0], Input: left[1], Output: left[2]}
}
