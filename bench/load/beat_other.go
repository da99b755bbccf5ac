//go:build !linux

package load

// KeepTime does nothing here.
func KeepTime() (stop func()) { return func() {} }
