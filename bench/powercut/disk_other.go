//go:build !linux

package powercut

import (
	"context"
	"errors"
)

var errNotHere = errors.New("cut the power: only Linux has file systems that can be shut down")

// Disk is one such file system. It is for one goroutine.
type Disk struct{}

// New fails.
func New(context.Context, string, int64) (*Disk, error) { return nil, errNotHere }

// Dir is empty.
func (d *Disk) Dir() string { return "" }

// Cut fails.
func (d *Disk) Cut() error { return errNotHere }

// Restore fails.
func (d *Disk) Restore(context.Context) error { return errNotHere }

// Close does nothing.
func (d *Disk) Close() error { return nil }
