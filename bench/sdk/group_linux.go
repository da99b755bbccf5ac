package sdk

import "syscall"

// ownGroup puts a program into a process group of its own, and has the kernel kill it when
// the thread that started it ends.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
