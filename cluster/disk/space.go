package disk

import (
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"
)

// Usage is the space of a file system in bytes.
type Usage struct {
	// Free is what this process may still use.
	Free  uint64
	Total uint64
}

// Statfs asks the system for the space of the file system that holds path.
func Statfs(path string) (Usage, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return Usage{}, fmt.Errorf("statfs %s: %w", path, err)
	}
	size := uint64(st.Bsize)
	return Usage{Free: saturated(st.Bavail, size), Total: saturated(st.Blocks, size)}, nil
}

func saturated(blocks, size uint64) uint64 {
	hi, lo := bits.Mul64(blocks, size)
	if hi != 0 {
		return ^uint64(0)
	}
	return lo
}

// SpaceConfig configures a Space.
type SpaceConfig struct {
	// Path is any file or directory of the file system. Required.
	Path string
	// MinFree is how many bytes have to be free. Default 1 GiB; negative: any
	// number is enough.
	MinFree int64
	// MinPercent is how many percent have to be free, beside MinFree; the
	// larger counts. Default 5, at most 50; negative: any.
	MinPercent int
	// Interval is how often to look. Default 1 s.
	Interval time.Duration
	// Statfs asks for the space. Default Statfs.
	Statfs func(path string) (Usage, error)
	// OnChange hears that the state has changed, one call at a time. It must not
	// wait for Close. May be nil.
	OnChange func(SpaceReport)
	// Logger hears of changes and of errors to ask. Nil: nobody does.
	Logger hclog.Logger
}

// SpaceReport is what was seen last.
type SpaceReport struct {
	Usage
	// Need is how many bytes have to be free.
	Need uint64
	// Low: nothing more should be proposed. It is left only when a tenth more
	// than Need is free, so that it does not flap.
	Low bool
}

const (
	minFreeDefault    = 1 << 30
	minPercentDefault = 5
	minPercentMost    = 50
)

// need is how many bytes have to be free of total.
func need(total uint64, minFree int64, minPercent int) uint64 {
	n := uint64(max(0, minFree))
	if minPercent > 0 {
		n = max(n, total/100*uint64(min(minPercent, minPercentMost)))
	}
	return n
}

// judge is the state after a look at the file system.
func judge(wasLow bool, u Usage, need uint64) SpaceReport {
	r := SpaceReport{Usage: u, Need: need, Low: u.Free < need}
	if wasLow && u.Free < need+need/10 {
		r.Low = true
	}
	return r
}

// Space watches the free space of a file system.
type Space struct {
	config  SpaceConfig
	last    atomic.Pointer[SpaceReport]
	done    chan struct{}
	close   sync.Once
	running sync.WaitGroup
}

// WatchSpace looks once, before it returns, and then every Interval until
// Close. An error of the first look is returned; later ones leave the state as
// it is and are logged when they begin.
func WatchSpace(c SpaceConfig) (*Space, error) {
	if c.MinFree == 0 {
		c.MinFree = minFreeDefault
	}
	if c.MinPercent == 0 {
		c.MinPercent = minPercentDefault
	}
	if c.Interval <= 0 {
		c.Interval = time.Second
	}
	if c.Statfs == nil {
		c.Statfs = Statfs
	}
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	s := &Space{config: c, done: make(chan struct{})}
	s.last.Store(&SpaceReport{})
	if err := s.look(); err != nil {
		return nil, err
	}
	s.running.Go(s.run)
	return s, nil
}

// Low reports whether nothing more should be proposed. It costs one load.
func (s *Space) Low() bool { return s.last.Load().Low }

// Last is what was seen last.
func (s *Space) Last() SpaceReport { return *s.last.Load() }

// Close stops watching. It is idempotent.
func (s *Space) Close() {
	s.close.Do(func() { close(s.done) })
	s.running.Wait()
}

func (s *Space) run() {
	ticker := time.NewTicker(s.config.Interval)
	defer ticker.Stop()
	failing := false
	for {
		select {
		case <-s.done:
			return
		case <-ticker.C:
		}
		err := s.look()
		if err != nil && !failing {
			s.config.Logger.Warn("disk space not known", "err", err)
		}
		failing = err != nil
	}
}

func (s *Space) look() error {
	usage, err := s.config.Statfs(s.config.Path)
	if err != nil {
		return err
	}
	was := s.Low()
	r := judge(was, usage, need(usage.Total, s.config.MinFree, s.config.MinPercent))
	s.last.Store(&r)
	if r.Low == was {
		return nil
	}
	if r.Low {
		s.config.Logger.Error("disk low", "free", r.Free, "need", r.Need)
	} else {
		s.config.Logger.Info("disk space is back", "free", r.Free, "need", r.Need)
	}
	if s.config.OnChange != nil {
		s.config.OnChange(r)
	}
	return nil
}
