package clock

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorlease/quorlease/fsm/bucket"
)

func TestT5BootTimeClock(t *testing.T) {
	t.Parallel()
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		t.Skip("this system has no boot-time clock")
	}
	before := time.Duration(ts.Nano())
	got := bootTime()()
	if got < before || got > before+time.Minute {
		t.Fatalf("clock shows %s, the boot-time clock showed %s before", got, before)
	}
	// A machine wakes after an hour of sleep: the time has passed for it.
	elapsed := time.Duration(0)
	c := New(func() time.Duration { return elapsed })
	c.SetApplied(bucket.Instant(time.Minute))
	elapsed += time.Hour
	if got, want := time.Duration(c.Estimate()), time.Hour+time.Minute; got != want {
		t.Fatalf("estimate %s, want %s", got, want)
	}
}
