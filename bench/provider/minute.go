package provider

import "time"

// Minute counts the estimated tokens of both directions in a minute of the
// clock, and starts anew with the next. What it refuses it does not count.
type Minute struct {
	tokens int64
	minute time.Duration
	used   int64
}

// NewMinute is an account with so many tokens a minute.
func NewMinute(tokens int64) *Minute { return &Minute{tokens: tokens} }

// Ask admits a call that fits into what is left of this minute.
func (m *Minute) Ask(now time.Duration, call Call) Answer {
	m.turn(now)
	n := call.Input + call.Output
	answer := Answer{OK: m.used+n <= m.tokens}
	switch {
	case answer.OK:
		m.used += n
	case n > m.tokens:
		answer.Binding = InputTokens
	default:
		answer.Binding = InputTokens
		answer.RetryAfter = wholeSeconds((m.minute+1)*time.Minute - now)
	}
	answer.Remaining = m.left()
	return answer
}

// State is what the headers of an answer are made from: the counter is full again
// with the next minute of the clock.
func (m *Minute) State(now time.Duration) State {
	m.turn(now)
	return State{
		Limits:    Limits{Input: m.tokens},
		Remaining: m.left(),
		FullInput: (m.minute+1)*time.Minute - now,
	}
}

// left is never less than nothing, though a limit was lowered below what is used.
func (m *Minute) left() Remaining {
	return Remaining{Requests: -1, Input: max(0, m.tokens-m.used), Output: -1}
}

func (m *Minute) turn(now time.Duration) {
	if minute := now / time.Minute; minute != m.minute {
		m.minute, m.used = minute, 0
	}
}
