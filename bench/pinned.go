package bench

import (
	"os/exec"
	"runtime"
	"sync"
)

// starter runs process starts on one thread that lives as long as the program:
// the kernel sends a child its parent-death signal when the *thread* that
// started it ends, and Go ends idle threads as it likes.
var starter = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go doPinned(work)
	return work
})

func doPinned(work <-chan func()) {
	runtime.LockOSThread()
	for f := range work {
		f()
	}
}

// startPinned starts a command whose SysProcAttr asks for a parent-death
// signal.
func startPinned(cmd *exec.Cmd) error {
	done := make(chan error, 1)
	starter() <- func() { done <- cmd.Start() }
	return <-done
}
