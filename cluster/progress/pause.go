package progress

import (
	"context"
	"time"
)

// Pause waits for d, at most until ctx ends, and reports whether ctx has lasted.
func Pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
