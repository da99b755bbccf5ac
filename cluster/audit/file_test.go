package audit

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
)

// rollingFile is a rolling file in a directory of its own.
func rollingFile(t *testing.T, most int64) *rolling {
	t.Helper()
	r := &rolling{path: filepath.Join(t.TempDir(), "audit"), most: most, keep: 3, open: openFile}
	if err := r.reopen(); err != nil {
		t.Fatal(err)
	}
	return r
}

// contents are those of the file and of the old ones, the oldest first.
func contents(t *testing.T, r *rolling) (list []string) {
	t.Helper()
	if err := r.close(); err != nil {
		t.Error(err)
	}
	found, err := filepath.Glob(r.path + "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range slices.Backward(found) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, string(text))
	}
	return list
}

// TestAFileThatCanNotBeginAnew: while there is no next file the old ones stay what they
// are, however often it is tried.
func TestAFileThatCanNotBeginAnew(t *testing.T) {
	t.Parallel()
	r := rollingFile(t, 2)
	for _, line := range []string{"1\n", "2\n", "3\n"} {
		if err := r.write([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	r.open = func(string) (file, int64, error) { return nil, 0, syscall.EMFILE }
	for range 5 {
		if err := r.write([]byte("x\n")); !errors.Is(err, syscall.EMFILE) {
			t.Errorf("%v, want that there is no file", err)
		}
	}
	r.open = openFile
	if err := r.write([]byte("4\n")); err != nil {
		t.Error(err)
	}
	if got, want := fmt.Sprint(contents(t, r)), fmt.Sprint([]string{"1\n", "2\n", "3\n", "4\n"}); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestHalfALine: what a crash has left of a line stays a line of its own.
func TestHalfALine(t *testing.T) {
	t.Parallel()
	r := rollingFile(t, 1000)
	if err := errors.Join(r.close(), os.WriteFile(r.path, []byte("1\n{\"ti"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := r.write([]byte("2\n")); err != nil {
		t.Fatal(err)
	}
	if got, want := contents(t, r)[0], "1\n{\"ti\n2\n"; got != want || r.size != int64(len(want)) {
		t.Errorf("%q and a size of %d, want %q", got, r.size, want)
	}
}

// sick is a file that takes half of what is written, and can't be cut.
type sick struct{ file }

func (s sick) Write(p []byte) (int, error) {
	n, _ := s.file.Write(p[:len(p)/2])
	return n, syscall.EIO
}

func (s sick) Truncate(int64) error { return syscall.EIO }

// TestAFileThatCanNotBeCut: half a line that can't be taken back spoils no other.
func TestAFileThatCanNotBeCut(t *testing.T) {
	t.Parallel()
	r := rollingFile(t, 1000)
	healthy := r.file
	r.file = sick{healthy}
	if err := r.write([]byte("11\n")); !errors.Is(err, syscall.EIO) {
		t.Errorf("%v, want that it fails", err)
	}
	if err := r.write([]byte("2\n")); err != nil {
		t.Error(err)
	}
	if got, want := contents(t, r)[0], "1\n2\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestTheFileIsTaken: what others do to the file loses no line that is written
// afterwards.
func TestTheFileIsTaken(t *testing.T) {
	t.Parallel()
	for what, take := range map[string]func(path string) error{
		"removed":   os.Remove,
		"renamed":   func(path string) error { return os.Rename(path, path+".old") },
		"truncated": func(path string) error { return os.Truncate(path, 0) },
		"replaced": func(path string) error {
			return errors.Join(os.Remove(path), os.WriteFile(path, nil, 0o600))
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r := rollingFile(t, 1000)
			for _, step := range []func() error{
				func() error { return r.write([]byte("1\n")) },
				func() error { return take(r.path) },
				func() error { return r.write([]byte("2\n")) },
				r.close,
			} {
				if err := step(); err != nil {
					t.Fatal(err)
				}
			}
			text, err := os.ReadFile(r.path)
			if err != nil || string(text) != "2\n" || r.size != 2 {
				t.Errorf("%q and a size of %d, %v; want the second line", text, r.size, err)
			}
		})
	}
	t.Run("shared", func(t *testing.T) {
		t.Parallel()
		r := rollingFile(t, 1000)
		if _, _, err := openFile(r.path); err == nil || !strings.Contains(err.Error(), r.path) {
			t.Errorf("%v, want that another has it", err)
		}
		if err := r.close(); err != nil {
			t.Error(err)
		}
	})
	t.Run("a_pipe", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "pipe")
		if err := unix.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := openFile(path); err == nil {
			t.Error("a pipe was opened")
		}
	})
}

// TestARollTakesItsTime: while an old file goes to the disk lines are written on, and
// none is lost at ten thousand a second.
func TestARollTakesItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := config(filepath.Join(t.TempDir(), "audit"))
		c.Bytes = 2 << 20
		all, syncs := 0, 0
		l, err := open(c, func(string) (file, int64, error) {
			return &slow{disk: &disk{}, closed: func(d *disk) {
				all += bytes.Count(d.Bytes(), []byte("\n"))
				syncs++
			}}, 0, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		const seconds, ticks = 3, 100
		for i := range seconds * ticks {
			for range 10_000 / ticks {
				l.Decided(ask(i), 0, granted())
			}
			<-time.After(time.Second / ticks)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if all != seconds*10_000 || l.dropped.Load()+l.failed.Load() != 0 || syncs < 2 {
			t.Errorf("%d lines, %d dropped and %d failed in %d files", all, l.dropped.Load(), l.failed.Load(), syncs)
		}
	})
}

// slow is a file that takes a second to be handed to the disk.
type slow struct {
	*disk
	closed func(*disk)
}

func (s *slow) Sync() error {
	<-time.After(time.Second)
	return nil
}

func (s *slow) Close() error {
	s.closed(s.disk)
	return nil
}

// TestAllLimitsAtOnce: a file of twenty thousand limits is applied in one moment, and
// every change is there.
func TestAllLimitsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &disk{}
		l, err := open(config("audit"), d.open)
		if err != nil {
			t.Fatal(err)
		}
		const limits = 20_000
		result := &logv1.LimitsResult{Revision: 1}
		for i := range limits {
			name := fmt.Sprint("limit-", i)
			result.Changes = append(result.Changes, &logv1.LimitChange{Name: name, LimitAfter: &logv1.Limit{Name: name}})
		}
		l.revised(Entry{Index: 1}, result, "ann")
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if lines := bytes.Count(d.Bytes(), []byte("\n")); lines != limits || l.dropped.Load() != 0 {
			t.Errorf("%d lines and %d dropped, want %d lines", lines, l.dropped.Load(), limits)
		}
	})
}

// TestAClockThatIsSetBack: drops are said although the clock has not come again to when
// that was done last.
func TestAClockThatIsSetBack(t *testing.T) {
	t.Parallel()
	c := config("audit")
	l := &Log{config: c}
	now := time.Now()
	for _, at := range []time.Time{now, now.Add(-time.Hour), now.Add(-time.Hour + 1)} {
		l.drop(at)
	}
	told, err := c.Events.Subscribe(new(uint64))
	if err != nil {
		t.Fatal(err)
	}
	said := 0
	for ; ; said++ {
		if _, ok, err := told.TryNext(); !ok || err != nil {
			break
		}
	}
	if said != 2 {
		t.Errorf("it was said %d times, want 2", said)
	}
}
