package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// bootTime reads the clock that goes on in a suspension.
func bootTime() (time.Duration, bool) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0, false
	}
	return time.Duration(ts.Nano()), true
}
