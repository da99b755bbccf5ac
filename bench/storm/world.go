package storm

import (
	"math"
	"time"

	"github.com/quorlease/quorlease/bench/provider"
	"github.com/quorlease/quorlease/bench/sim/stage"
)

// world is virtual time with what helps to fill it.
type world struct{ *stage.Stage }

func newWorld(seed uint64) world { return world{stage.New(seed)} }

// until lets time pass until end.
func (w world) until(end time.Duration) { w.Run(end, func() bool { return false }) }

// even does f so many times a minute at equal distances, first at once, until
// end.
func (w world) even(perMinute float64, end time.Duration, f func()) {
	gap := float64(time.Minute) / perMinute
	for i := 0; ; i++ {
		at := time.Duration(float64(i) * gap)
		if at >= end {
			return
		}
		w.At(nil, at-w.Real(), f)
	}
}

// poisson does f so many times a minute on average, as people do who know nothing
// of one another, until end.
func (w world) poisson(perMinute float64, end time.Duration, f func()) {
	gap := time.Duration(w.Rand.ExpFloat64() * float64(time.Minute) / perMinute)
	if w.Real()+gap >= end {
		return
	}
	w.At(nil, gap, func() {
		f()
		w.poisson(perMinute, end, f)
	})
}

// reckoned does f as poisson does, and as often as reckoned until span: the moments
// are chance, their number is not.
func (w world) reckoned(perMinute float64, span, end time.Duration, f func()) {
	for range int(math.Round(perMinute * span.Minutes())) {
		w.At(nil, w.Between(0, span), f)
	}
	w.At(nil, span, func() { w.poisson(perMinute, end, f) })
}

// naive is a client that counts on trying again.
type naive struct {
	world world
	model provider.Model
	call  provider.Call
	// most is how many attempts it makes in total; 0: it never stops.
	most int
	// refusal is how long a no takes, success how long a yes, delay how long it
	// waits after a no.
	refusal, success time.Duration
	delay            func(attempt int) time.Duration
	// seen, where set, is told each attempt: 0 the first.
	seen func(attempt int, answer provider.Answer)
}

// try makes one attempt after the other, and says how it ended.
func (n *naive) try(attempt int, done func(ok bool)) {
	answer := n.model.Ask(n.world.Real(), n.call)
	if n.seen != nil {
		n.seen(attempt, answer)
	}
	if answer.OK {
		n.world.At(nil, n.success, func() { done(true) })
		return
	}
	attempt++
	if attempt == n.most {
		n.world.At(nil, n.refusal, func() { done(false) })
		return
	}
	n.world.At(nil, n.refusal+n.delay(attempt), func() { n.try(attempt, done) })
}

func fixed(d time.Duration) func(int) time.Duration {
	return func(int) time.Duration { return d }
}

// tally counts attempts and how they ended.
type tally struct {
	attempts, admitted int
	// retries are the moments of all attempts but first ones.
	retries []time.Duration
}

func (t *tally) of(w world) func(int, provider.Answer) {
	return func(attempt int, answer provider.Answer) {
		t.attempts++
		if answer.OK {
			t.admitted++
		}
		if attempt > 0 {
			t.retries = append(t.retries, w.Real())
		}
	}
}

func (t *tally) perDone() float64 { return ratio(t.attempts, t.admitted) }

// refused is in percent.
func (t *tally) refused() float64 { return 100 * ratio(t.attempts-t.admitted, t.attempts) }

func ratio(a, b int) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}
