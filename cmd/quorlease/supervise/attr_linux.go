package supervise

import "syscall"

// ownGroup puts a child into a process group of its own and has the kernel
// kill it when the thread that started it ends.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
