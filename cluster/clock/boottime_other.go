//go:build !linux

package clock

import "time"

// bootTime returns the monotonic clock: this system has no other that would go
// on while the machine is suspended.
func bootTime() func() time.Duration {
	start := time.Now()
	return func() time.Duration { return time.Since(start) }
}
