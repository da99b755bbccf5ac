package provider

import "time"

// Fluid admits requests as fast as its headroom grows, in whole requests, and
// saves up what nobody asks for. It starts with one second's worth: whoever asks
// in the first second finds that second's headroom.
type Fluid struct {
	perMinute int64
	admitted  int64
}

// NewFluid is a headroom of so many requests a minute.
func NewFluid(perMinute int64) *Fluid { return &Fluid{perMinute: perMinute} }

// Ask admits the n-th request when n requests have come in since a second before
// the start.
func (f *Fluid) Ask(now time.Duration, _ Call) Answer {
	room := f.perMinute*int64(now+time.Second)/int64(time.Minute) - f.admitted
	if room >= 1 {
		f.admitted++
		return Answer{OK: true, Remaining: Remaining{Requests: room - 1, Input: -1, Output: -1}}
	}
	fits := time.Duration(ceil((f.admitted+1)*int64(time.Minute), f.perMinute)) - time.Second
	return Answer{
		RetryAfter: wholeSeconds(fits - now), Binding: Requests,
		Remaining: Remaining{Input: -1, Output: -1},
	}
}

func ceil(a, b int64) int64 { return (a + b - 1) / b }
