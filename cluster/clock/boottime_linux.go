package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// bootTime returns this machine's boot-time clock: unlike the monotonic clock
// it goes on while the machine is suspended, so a node does not wake up
// believing that no time has passed (T5). Where the system has none it falls
// back to the monotonic clock.
func bootTime() func() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		start := time.Now()
		return func() time.Duration { return time.Since(start) }
	}
	return func() time.Duration {
		var ts unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
			// It worked when the process started, with the same arguments.
			panic("read boot-time clock: " + err.Error())
		}
		return time.Duration(ts.Nano())
	}
}
