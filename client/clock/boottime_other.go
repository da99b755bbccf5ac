//go:build !linux

package clock

import "time"

// bootTime says that this system has no such clock: then every step forward of
// the wall clock counts as a suspension, and leases end early rather than late.
func bootTime() (time.Duration, bool) { return 0, false }
