//go:build !linux

package bench

import "syscall"

// ownGroup puts a child into a process group of its own. The kernel can't tie its
// life to its parent's here.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
