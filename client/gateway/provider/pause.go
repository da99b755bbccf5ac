package provider

import (
	"fmt"
	"time"
)

const (
	// pauseExtra is over how long those who were told the same wait come back.
	pauseExtra = 2 * time.Second
	// pauseFirst is the longest pause before the first retry of what was told nothing;
	// each further one is twice as long, to pauseMax.
	pauseFirst = time.Second
	pauseMax   = time.Minute
)

// Schedule is how long to wait where a provider asks for nothing: Step for each try that
// was made, and a random time from Least to below Most on top. The zero Schedule doubles
// from try to try instead, from a second to a minute, and draws the second half.
type Schedule struct {
	// Step is up to a minute, 0 for none.
	Step time.Duration
	// Least and Most bound what is random. Most is up to a minute, and more than Least:
	// no pause has a fixed length (S2-10).
	Least, Most time.Duration
}

// Validate says what is out of range. It begins with the field.
func (s Schedule) Validate() error {
	switch {
	case s == Schedule{}:
		return nil
	case s.Step < 0 || s.Step > pauseMax:
		return fmt.Errorf("step %s: must be from 0s to %s", s.Step, pauseMax)
	case s.Least < 0:
		return fmt.Errorf("least %s: must be 0s or more", s.Least)
	case s.Most <= s.Least || s.Most > pauseMax:
		return fmt.Errorf("most %s: must be more than least, %s, and at most %s", s.Most, s.Least, pauseMax)
	}
	return nil
}

// Pause is how long to wait before the same request may be sent again, after so many
// retries, 0 first. What the provider asks for is the least, and a random part of two
// seconds comes on top, whatever the schedule is. Where it asks for nothing the schedule
// says it, up to a minute and what is random. draw returns a number from 0 to below n, as
// rand.Int64N does.
func (s Schedule) Pause(w Wait, retries int, draw func(n int64) int64) time.Duration {
	retries = max(retries, 0)
	switch {
	case w.Said:
		return w.For + time.Duration(draw(int64(pauseExtra)))
	case s != Schedule{}:
		// More than these are not made, and their product would not fit.
		steps := time.Duration(min(retries, 1<<16)) + 1
		return min(steps*s.Step, pauseMax) + s.Least + time.Duration(draw(int64(s.Most-s.Least)))
	}
	longest := pauseFirst
	for range min(retries, 6) {
		longest = min(2*longest, pauseMax)
	}
	return longest/2 + time.Duration(draw(int64(longest/2)+1))
}
