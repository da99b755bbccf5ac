package audit

import (
	"errors"
	"fmt"
	"os"
)

// file is what is appended to. Tests have others.
type file interface {
	Write(p []byte) (int, error)
	Truncate(size int64) error
	Sync() error
	Close() error
}

// openFile opens a file for appending and says how long it is.
func openFile(path string) (file, int64, error) {
	// Who asked for what is nobody's business but the operator's.
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, 0, fmt.Errorf("--audit: %w", err)
	}
	stat, err := f.Stat()
	if err == nil && !stat.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", path)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("--audit: %w", errors.Join(err, f.Close()))
	}
	return f, stat.Size(), nil
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
}

// write appends whole lines, or nothing.
func (r *rolling) write(lines []byte) error {
	if r.size > 0 && r.size+int64(len(lines)) > r.most {
		if err := r.roll(); err != nil {
			return err
		}
	}
	if r.file == nil {
		if err := r.reopen(); err != nil {
			return err
		}
	}
	n, err := r.file.Write(lines)
	if err == nil {
		r.size += int64(n)
		return nil
	}
	// Half a line would spoil the next one.
	return errors.Join(fmt.Errorf("write audit file: %w", err), r.file.Truncate(r.size))
}

func (r *rolling) reopen() error {
	f, size, err := r.open(r.path)
	if err != nil {
		return err
	}
	r.file, r.size = f, size
	return nil
}

// roll renames the file and every old one, and begins a new one. The oldest goes.
func (r *rolling) roll() error {
	err := r.close()
	for i := r.keep; i > 0 && err == nil; i-- {
		from := fmt.Sprintf("%s.%d", r.path, i-1)
		if i == 1 {
			from = r.path
		}
		if err = os.Rename(from, fmt.Sprintf("%s.%d", r.path, i)); errors.Is(err, os.ErrNotExist) {
			err = nil
		}
	}
	if err != nil {
		return fmt.Errorf("roll audit file: %w", err)
	}
	return r.reopen()
}

// close hands everything to the disk. The file is opened again by the next write.
func (r *rolling) close() error {
	if r.file == nil {
		return nil
	}
	f := r.file
	r.file = nil
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("close audit file: %w", err)
	}
	return nil
}
