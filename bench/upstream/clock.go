package upstream

import (
	"context"
	"time"
)

// Clock is the time of a scenario. It may be used by many goroutines.
type Clock interface {
	// Now is the time since the scenario began. It never goes back.
	Now() time.Duration
	// Sleep waits for so much of the scenario's time, or until ctx ends and then
	// returns its error.
	Sleep(ctx context.Context, wait time.Duration) error
}

// Speed is a clock that starts now and goes so many times as fast as the time of the
// process, which in a synctest bubble is the bubble's. Less than one is one.
func Speed(times int) Clock { return &speed{begun: time.Now(), times: time.Duration(max(1, times))} }

type speed struct {
	begun time.Time
	times time.Duration
}

func (s *speed) Now() time.Duration { return time.Since(s.begun) * s.times }

func (s *speed) Sleep(ctx context.Context, wait time.Duration) error {
	if err := ctx.Err(); err != nil || wait <= 0 {
		return err
	}
	timer := time.NewTimer((wait + s.times - 1) / s.times)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
