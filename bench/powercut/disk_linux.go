package powercut

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// shutdownCall is EXT4_IOC_SHUTDOWN, and withoutLog its flag NOLOGFLUSH.
	shutdownCall = 0x8004587D
	withoutLog   = 2
	// letGoWithin is how long to wait for the last process to let go of a file, and
	// for the system to let go of the image.
	letGoWithin = 10 * time.Second
)

// Disk is one such file system. It is for one goroutine.
type Disk struct {
	image, place string
	mounted      bool
}

// New makes a disk of size bytes in dir and mounts it. Close removes it.
func New(ctx context.Context, dir string, size int64) (*Disk, error) {
	d := &Disk{image: filepath.Join(dir, "disk.ext4"), place: filepath.Join(dir, "disk")}
	if err := os.Mkdir(d.place, 0o700); err != nil {
		return nil, fmt.Errorf("make a disk: %w", err)
	}
	file, err := os.OpenFile(d.image, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make a disk: %w", err)
	}
	if err := errors.Join(file.Truncate(size), file.Close()); err != nil {
		return nil, fmt.Errorf("make a disk: %w", err)
	}
	if err := command(ctx, "mkfs.ext4", "-q", "-F", d.image); err != nil {
		return nil, err
	}
	return d, d.Restore(ctx)
}

// Dir is where it is mounted.
func (d *Disk) Dir() string { return d.place }

// Cut cuts the power: from now on every write fails, and what was not synced is gone.
// Whoever uses the disk must be ended before Restore.
func (d *Disk) Cut() error {
	at, err := os.Open(d.place)
	if err != nil {
		return fmt.Errorf("cut the power: %w", err)
	}
	defer at.Close()
	flag := uint32(withoutLog)
	//nolint:gosec // the call takes a pointer to its flag
	_, _, failed := unix.Syscall(unix.SYS_IOCTL, at.Fd(), shutdownCall, uintptr(unsafe.Pointer(&flag)))
	if failed != 0 {
		return fmt.Errorf("cut the power of %s: %w", d.place, failed)
	}
	return nil
}

// Restore mounts the disk again, as it was when the power went.
func (d *Disk) Restore(ctx context.Context) error {
	if err := d.unmount(ctx); err != nil {
		return err
	}
	if err := command(ctx, "mount", "-t", "ext4", "-o", "loop", d.image, d.place); err != nil {
		return err
	}
	d.mounted = true
	return nil
}

// Close unmounts the disk. The image is left to whoever made the directory.
func (d *Disk) Close() error {
	return d.unmount(context.Background())
}

// unmount waits until nobody uses the disk any more, in this mount namespace or in
// another: one that was made meanwhile has a copy of the mount, and as long as it is
// there the next mount would be of the same file system, which is without power.
func (d *Disk) unmount(ctx context.Context) error {
	waiting, cancel := context.WithTimeout(ctx, letGoWithin)
	defer cancel()
	if d.mounted {
		if err := until(waiting, func() error { return command(ctx, "umount", d.place) }); err != nil {
			return err
		}
		d.mounted = false
	}
	return until(waiting, func() error { return d.held(ctx) })
}

// held is an error while a loop device has the image.
func (d *Disk) held(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, "losetup", "-j", d.image).Output()
	if err != nil {
		return fmt.Errorf("losetup: %w", err)
	}
	if device := strings.TrimSpace(string(out)); device != "" {
		return fmt.Errorf("umount %s: another mount namespace still has it, as %s", d.place, device)
	}
	return nil
}

// until tries again until there is no error. At the end of ctx it returns the last one
// that did not come from that.
func until(ctx context.Context, try func() error) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		err := try()
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return last
		}
	}
}

func command(ctx context.Context, name string, args ...string) error {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(string(out)))
	}
	return nil
}
