package load

import (
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// beatEvery is how late a caller of an open loop may begin by the program's own doing.
const beatEvery = 100 * time.Microsecond

// KeepTime makes the timers of an open loop end in time, until stop. An idle Go program
// sleeps for whole milliseconds: nearly every call that nothing else wakes would begin up
// to one late, which is not the time of whoever is asked. A file that is ready at each
// beat wakes it. Where there are none, it does nothing.
func KeepTime() (stop func()) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return func() {}
	}
	beats := os.NewFile(uintptr(fd), "timerfd")
	every := unix.NsecToTimespec(beatEvery.Nanoseconds())
	if unix.TimerfdSettime(fd, 0, &unix.ItimerSpec{Interval: every, Value: every}, nil) != nil {
		_ = beats.Close()
		return func() {}
	}
	var joined sync.WaitGroup
	joined.Go(func() {
		var count [8]byte
		for {
			if _, err := beats.Read(count[:]); err != nil {
				return
			}
		}
	})
	return func() {
		_ = beats.Close()
		joined.Wait()
	}
}
