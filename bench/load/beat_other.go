//go:build !linux

package load

func keepTime() (stop func()) { return func() {} }
