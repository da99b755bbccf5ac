//go:build !linux

package supervise

import "syscall"

// ownGroup asks for nothing where the kernel can't tie a child's life to its
// parent's.
func ownGroup() *syscall.SysProcAttr { return nil }
