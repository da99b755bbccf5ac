package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// file is what is appended to. Tests have others.
type file interface {
	Write(p []byte) (int, error)
	// Size is how long it is now, or errTaken where it is no longer that of the path.
	Size() (int64, error)
	Truncate(size int64) error
	Sync() error
	Close() error
}

// errTaken: somebody has removed or renamed the file.
var errTaken = errors.New("the file is another one now")

// onDisk is a file with a lock on it: what two processes write is mixed, and renamed twice.
type onDisk struct {
	*os.File
	// half: it ends with half a line, which a crash has left.
	half bool
}

// openFile opens a file for appending and says how long it is.
func openFile(path string) (file, int64, error) {
	// Who asked for what is nobody's business but the operator's. To open a pipe would wait
	// for somebody who reads.
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, 0, fmt.Errorf("--audit: %w", err)
	}
	d := &onDisk{File: f}
	size, err := d.begin()
	if err != nil {
		return nil, 0, fmt.Errorf("--audit: %w", errors.Join(err, f.Close()))
	}
	return d, size, nil
}

// begin checks what was opened.
func (d *onDisk) begin() (size int64, err error) {
	stat, err := d.Stat()
	switch {
	case err != nil:
		return 0, err
	case !stat.Mode().IsRegular():
		return 0, fmt.Errorf("%s is no regular file", d.Name())
	case errors.Is(unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK):
		return 0, fmt.Errorf("%s is written by another process", d.Name())
	case stat.Size() == 0:
		return 0, nil
	}
	last := make([]byte, 1)
	if _, err = d.ReadAt(last, stat.Size()-1); err != nil {
		return 0, err
	}
	d.half = last[0] != '\n'
	return stat.Size(), nil
}

// Write appends lines, after the end of half a line.
func (d *onDisk) Write(p []byte) (int, error) {
	if d.half {
		p = append([]byte{'\n'}, p...)
	}
	n, err := d.File.Write(p)
	d.half = d.half && err != nil
	return n, err
}

// Size is how long it is, if it is still the one of its path.
func (d *onDisk) Size() (int64, error) {
	own, err := d.Stat()
	if err != nil {
		return 0, err
	}
	there, err := os.Stat(d.Name())
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(own, there) {
		return 0, errTaken
	}
	return own.Size(), nil
}

// rolling is a file that is renamed when it is full: FILE.1 is the newest of the
// old ones. It belongs to one goroutine.
type rolling struct {
	path string
	// most is how long a file gets, in bytes; keep is how many old ones stay.
	most int64
	keep int
	open func(path string) (file, int64, error)

	file file
	size int64
	// retiring says when the last file was handed to the disk, nil for none. That can take a
	// second, in which more is decided than there is room for.
	retiring chan error
	// err is the first of those, which Close says.
	err error
}

// write appends whole lines, or nothing.
func (r *rolling) write(lines []byte) error {
	err := r.look()
	if err == nil && r.size > 0 && r.size+int64(len(lines)) > r.most {
		err = r.roll()
	}
	if err != nil {
		return err
	}
	n, err := r.file.Write(lines)
	if err == nil {
		r.size += int64(n)
		return nil
	}
	// Half a line would spoil the next one.
	err = fmt.Errorf("write audit file: %w", err)
	if broken := r.file.Truncate(r.size); broken != nil {
		// What opens it next sees where it ends, once this one has let it go.
		err = errors.Join(err, broken)
		r.retire()
		r.await()
	}
	return err
}

// look opens the file where it is not, and sees what others did to it.
func (r *rolling) look() error {
	if r.file != nil {
		size, err := r.file.Size()
		switch {
		case err == nil:
			r.size = size
			return nil
		case !errors.Is(err, errTaken):
			return fmt.Errorf("look at audit file: %w", err)
		}
		r.retire()
	}
	return r.reopen()
}

func (r *rolling) reopen() error {
	f, size, err := r.open(r.path)
	if err != nil {
		return err
	}
	r.file, r.size = f, size
	return nil
}

// roll renames the file and every old one up to where there is room, and begins a new one.
// The oldest goes, once, however often a new one can't be begun.
func (r *rolling) roll() error {
	for i := r.free(); i > 0; i-- {
		if err := os.Rename(r.old(i-1), r.old(i)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("roll audit file: %w", err)
		}
	}
	r.retire()
	return r.reopen()
}

// old is the path of old file i; of 0 that of the file itself.
func (r *rolling) old(i int) string {
	if i == 0 {
		return r.path
	}
	return fmt.Sprintf("%s.%d", r.path, i)
}

// free is the first old file that is not there, or the last that may be.
func (r *rolling) free() int {
	for i := 1; i < r.keep; i++ {
		if _, err := os.Lstat(r.old(i)); errors.Is(err, fs.ErrNotExist) {
			return i
		}
	}
	return r.keep
}

// retire hands the file to the disk and closes it, aside: lines are written on
// meanwhile. It waits for the one before.
func (r *rolling) retire() {
	r.await()
	f, done := r.file, make(chan error, 1)
	r.file, r.retiring = nil, done
	go func() { done <- errors.Join(f.Sync(), f.Close()) }()
}

func (r *rolling) await() {
	if r.retiring == nil {
		return
	}
	if err := <-r.retiring; err != nil && r.err == nil {
		r.err = fmt.Errorf("close audit file: %w", err)
	}
	r.retiring = nil
}

// close hands everything to the disk. The file is opened again by the next write.
func (r *rolling) close() error {
	if r.file != nil {
		r.retire()
	}
	r.await()
	return r.err
}
