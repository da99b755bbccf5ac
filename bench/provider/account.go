package provider

import (
	"errors"
	"fmt"
	"time"
)

// State is what is left of each dimension at a moment, and how long it is until
// there is nothing used of it any more. A dimension that is not counted has a
// limit of 0, -1 left and no time.
type State struct {
	Limits                              Limits
	Remaining                           Remaining
	FullRequests, FullInput, FullOutput time.Duration
}

// Span is from a moment on, until another. Until 0: for good.
type Span struct{ From, Until time.Duration }

// Has says whether now is in the span. The zero Span has every moment.
func (s Span) Has(now time.Duration) bool { return now >= s.From && (s.Until == 0 || now < s.Until) }

// Lowered is a limit that is lower for a while.
type Lowered struct {
	Span
	// Input is the tokens of a minute. From 1 to Limits.Input.
	Input int64
}

// Rules are everything that an account is refused for.
type Rules struct {
	// Limits are what it may use a minute.
	Limits Limits
	// Options are of the buckets.
	Options Options
	// FixedMinute counts tokens in minutes of the clock rather than in buckets:
	// both directions together, against Limits.Input, and requests in windows only.
	FixedMinute bool
	// Window is the part of a minute in which requests are counted where tokens are
	// by the minute: a second or ten. 0: requests are not counted.
	Window time.Duration
	// Lowered is when a fixed minute has fewer tokens than Limits say, and how many: an
	// adjustment that passes after hours. Nil: never.
	Lowered *Lowered
	// Concurrent is how many calls may be under way. 0: any number.
	Concurrent int
	// Growth is how fast the account may grow.
	Growth Growth
	// SpendCap is when the account has spent what it may spend; nil: never. Its end
	// is the day on which it is let in again.
	SpendCap *Span
	// Day is how many requests a day has beside; nil: any number.
	Day *Day
}

// Check says everything that is wrong with the rules.
func (r Rules) Check() error {
	var problems []error
	for _, field := range []struct {
		name  string
		value int64
	}{
		{"limits.requests", r.Limits.Requests},
		{"limits.input", r.Limits.Input},
		{"limits.output", r.Limits.Output},
		{"concurrent", int64(r.Concurrent)},
	} {
		if field.value < 0 || field.value > 1e8 {
			problems = append(problems, fmt.Errorf("%s: %d is not within 0 and 10^8", field.name, field.value))
		}
	}
	if r.FixedMinute && r.Limits.Input == 0 {
		problems = append(problems, errors.New("limits.input: 0, and it is what a fixed minute counts"))
	}
	if r.Window != 0 && (!r.FixedMinute || time.Minute%r.Window != 0 || r.Window < 0) {
		problems = append(problems, fmt.Errorf("window: %v is no part of a fixed minute", r.Window))
	}
	if l := r.Lowered; l != nil && (!r.FixedMinute || l.Input < 1 || l.Input > r.Limits.Input) {
		problems = append(problems, fmt.Errorf("lowered: %d is not within 1 and the %d of a fixed minute",
			l.Input, r.Limits.Input))
	}
	if r.Growth.Above < 0 || r.Growth.Above > 1e12 {
		problems = append(problems, fmt.Errorf("growth.above: %d is not within 0 and 10^12", r.Growth.Above))
	}
	if cap := r.SpendCap; cap != nil && cap.Until != 0 && cap.Until <= cap.From {
		problems = append(problems, fmt.Errorf("spend cap: it ends at %v, before it begins at %v", cap.Until, cap.From))
	}
	if d := r.Day; d != nil && (d.Requests < 1 || d.Requests > 1e8 || d.Ends <= 0 || d.Ends > 24*time.Hour) {
		problems = append(problems, fmt.Errorf("day: %d until %v are not within 1 and 10^8, and 24h", d.Requests, d.Ends))
	}
	return errors.Join(problems...)
}

// counted is what counts the dimensions.
type counted interface {
	Model
	State(now time.Duration) State
}

// Account is a model with everything that a provider refuses for. A call takes
// something out of all of it, or nothing out of any.
type Account struct {
	rules    Rules
	counted  counted
	buckets  *Buckets
	minute   *Minute
	window   *Window
	speed    *Acceleration
	days     *days
	underway int
}

// NewAccount is an account at time 0, by rules that Check finds nothing wrong
// with.
func NewAccount(rules Rules) *Account {
	a := &Account{rules: rules, speed: NewAcceleration(rules.Growth), days: newDays(rules.Day)}
	if rules.FixedMinute {
		a.minute = NewMinute(rules.Limits.Input)
		a.counted = a.minute
		a.window = NewWindow(rules.Limits.Requests, rules.Window)
		return a
	}
	a.buckets = NewBuckets(rules.Limits, rules.Options)
	a.counted = a.buckets
	return a
}

// Ask admits the call or says why not: the spend cap before everything, because no
// wait helps against it, then what is under way, then how fast the account grows,
// then what is counted. Whoever is admitted is under way until Done.
func (a *Account) Ask(now time.Duration, call Call) Answer {
	refused := func(reason Reason, wait time.Duration) Answer {
		if a.buckets != nil {
			a.buckets.fill(now)
			a.buckets.failed()
		}
		if wait > 0 {
			wait = wholeSeconds(wait)
		}
		return Answer{Reason: reason, RetryAfter: wait, Remaining: a.counted.State(now).Remaining}
	}
	a.lower(now)
	if cap := a.rules.SpendCap; cap != nil && cap.Has(now) {
		return refused(SpendCap, 0)
	}
	if a.days.full(now) {
		return refused(Daily, 0)
	}
	if a.rules.Concurrent > 0 && a.underway >= a.rules.Concurrent {
		return refused(Concurrent, time.Second)
	}
	if wait := a.speed.Wait(now, call.Input); wait > 0 {
		return refused(SlowDown, wait)
	}
	if wait := a.window.Wait(now); wait > 0 {
		answer := refused(Exhausted, wait)
		answer.Binding = Requests
		return answer
	}
	answer := a.counted.Ask(now, call)
	if answer.OK {
		a.underway++
		a.days.count()
		a.window.Count(now)
		a.speed.Count(now, call.Input)
	}
	return answer
}

// lower gives a minute what it has now.
func (a *Account) lower(now time.Duration) {
	if a.rules.Lowered == nil {
		return
	}
	a.minute.tokens = a.rules.Limits.Input
	if a.rules.Lowered.Has(now) {
		a.minute.tokens = a.rules.Lowered.Input
	}
}

// Settle corrects what a call took; a fixed minute gives nothing back and takes
// nothing more.
func (a *Account) Settle(now time.Duration, more Call) {
	if a.buckets != nil {
		a.buckets.Settle(now, more)
	}
}

// Done ends a call that was admitted.
func (a *Account) Done() { a.underway = max(0, a.underway-1) }

// State is what the headers of an answer are made from. Where requests are counted
// in windows, it is the window's number that is seen.
func (a *Account) State(now time.Duration) State {
	a.lower(now)
	s := a.counted.State(now)
	if a.window != nil {
		s.Limits.Requests, s.Remaining.Requests = a.window.Most(), a.window.Left(now)
	}
	return s
}
