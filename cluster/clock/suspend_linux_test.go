package clock

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestBootTimeIsReadRarely: the clock stays with the system's, though most readings of
// it are not, and never goes back.
func TestBootTimeIsReadRarely(t *testing.T) {
	t.Parallel()
	t.Run("T5", func(t *testing.T) {
		t.Parallel()
		elapsed := bootTime()
		last := time.Duration(0)
		for range 100_000 {
			now := elapsed()
			if now < last {
				t.Fatalf("%v after %v", now, last)
			}
			last = now
		}
		var before, after unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &before); err != nil {
			t.Fatal(err)
		}
		got := elapsed()
		if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &after); err != nil {
			t.Fatal(err)
		}
		// Both are slewed alike; a pair of readings is good to apartMax.
		if got < time.Duration(before.Nano())-apartMax || got > time.Duration(after.Nano())+apartMax {
			t.Errorf("%v, the system says from %v to %v", got, time.Duration(before.Nano()), time.Duration(after.Nano()))
		}
	})
}

func BenchmarkElapsed(b *testing.B) {
	elapsed := bootTime()
	for b.Loop() {
		elapsed()
	}
}
