package clock

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// bootTime returns this machine's boot-time clock: unlike the monotonic clock
// it goes on while the machine is suspended, so a node does not wake up
// believing that no time has passed (T5). Where the system has none it falls
// back to the monotonic clock.
//
// To read it is a system call. In between the monotonic clock says how much has passed,
// as long as the wall clock says the same: only a suspension, or whoever sets the wall
// clock, moves them apart.
func bootTime() func() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		start := time.Now()
		return func() time.Duration { return time.Since(start) }
	}
	var last atomic.Pointer[reading]
	last.Store(read())
	return func() time.Duration {
		before := last.Load()
		now := time.Now()
		passed := now.Sub(before.at)
		if apart := now.Round(0).Sub(before.at.Round(0)) - passed; -apartMax < apart && apart < apartMax {
			return before.boot + passed
		}
		next := read()
		// It never goes back, by however little the readings differ.
		next.boot = max(next.boot, before.boot+next.at.Sub(before.at))
		last.CompareAndSwap(before, next)
		return next.boot
	}
}

const (
	// apartMax is what the wall and the monotonic clock may differ by in what they say
	// has passed: less than what holders of leases stop sooner.
	apartMax = time.Millisecond
	// pairWithin is how long reading both clocks may take, for them to be of one moment.
	pairWithin = 50 * time.Microsecond
	pairTries  = 10
)

// reading is one moment on both clocks.
type reading struct {
	at   time.Time
	boot time.Duration
}

// read reads both clocks. Where the machine is so busy that it takes long each time the
// last reading is used: it is late, and never early.
func read() *reading {
	for tries := 1; ; tries++ {
		var ts unix.Timespec
		at := time.Now()
		if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
			// It worked when the process started, with the same arguments.
			panic("read boot-time clock: " + err.Error())
		}
		if took := time.Since(at); took < pairWithin || tries == pairTries {
			return &reading{at: at, boot: time.Duration(ts.Nano())}
		}
	}
}
