package bench

import "syscall"

// ownGroup puts a child into a process group of its own, and has the kernel kill
// it when the thread that started it ends: it must not outlive the run.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
