package usage

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/metrics"
)

const (
	// writeEvery is how often the book of the hour is written.
	writeEvery = time.Minute
	// HoursMost is how many hours an answer is about at most: 31 days.
	HoursMost = 31 * 24
	// kept is how many hours are kept: a month can be told during all of the next one.
	kept = 2 * HoursMost
	// closedMost is how many hours that are over wait to be written at most.
	closedMost = 3
)

// Config says where the book is kept.
type Config struct {
	// Dir is its directory, which is made. Required.
	Dir string
	// Node is the name of the node that counts.
	Node string
	// Metrics and Logger hear of what is lost.
	Metrics *metrics.Set
	Logger  hclog.Logger
	// Now is the wall clock. Nil: the machine's.
	Now func() time.Time
}

// Book counts. A nil Book counts nothing. Safe for concurrent use.
type Book struct {
	config  Config
	files   files
	stop    chan struct{}
	closing sync.Once
	writer  sync.WaitGroup
	err     error
	// failed counts writes that failed, lost hours that were never written.
	failed, lost atomic.Uint64

	mu sync.Mutex
	// at is the hour that is counted, since 1970.
	at   int64
	book *hour
	// changed: something was counted since it was last written.
	changed bool
	// closed are hours that are over and not written yet.
	closed map[int64]*hour
	// partial are hours, of these, of which a file may have more: a clock that jumped has
	// been there before.
	partial map[int64]bool
}

// Open reads what there is of this hour and begins to count. Close releases it.
func Open(c Config) (*Book, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	b := &Book{
		config: c, files: files{dir: c.Dir}, stop: make(chan struct{}),
		closed: make(map[int64]*hour), partial: make(map[int64]bool),
	}
	if err := b.files.make(); err != nil {
		return nil, err
	}
	b.at = hourOf(c.Now())
	b.book = b.files.read(b.at)
	c.Metrics.Counter("quorlease_usage_failed_total",
		"Writes of the usage book that failed; it is tried again every minute.", b.failed.Load)
	c.Metrics.Counter("quorlease_usage_lost_hours_total",
		"Hours whose usage could not be written before too many others had to be.", b.lost.Load)
	b.writer.Go(b.run)
	return b, nil
}

// hourOf is the hour of a time, since 1970.
func hourOf(t time.Time) int64 { return t.Unix() / 3600 }

// Decided counts the answer to an acquire that was given now. It waits for nothing but
// others who count. A repeated answer was counted when it was first given.
func (b *Book) Decided(now time.Time, op *logv1.Acquire, team string, result *logv1.AcquireResult) {
	if b == nil || result.GetRepeated() {
		return
	}
	at := hourOf(now)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.turn(at)
	b.book.count(op, team, result.GetGranted())
	b.changed = true
}

// turn begins another hour. A clock that goes back by less than one counts for the hour
// that it was in: it is about to come there again. The lock is held.
func (b *Book) turn(now int64) {
	if now == b.at || now == b.at-1 {
		return
	}
	if b.changed {
		if len(b.closed) == closedMost {
			b.lost.Add(1)
			delete(b.partial, b.at)
		} else {
			b.closed[b.at] = b.book
		}
	}
	b.at = now
	if waits := b.closed[now]; waits != nil {
		// Somebody may read it.
		b.book, b.changed = copied(waits), true
		delete(b.closed, now)
		return
	}
	b.book, b.changed, b.partial[now] = newHour(), false, true
}

// complete reads what the files have of hours that were begun again.
func (b *Book) complete() {
	b.mu.Lock()
	begun := slices.Collect(maps.Keys(b.partial))
	b.mu.Unlock()
	for _, at := range begun {
		written := b.files.read(at)
		b.mu.Lock()
		switch {
		case at == b.at:
			b.book.take(written)
		case b.closed[at] != nil:
			// Somebody may read it.
			b.closed[at] = copied(b.closed[at])
			b.closed[at].take(written)
		}
		delete(b.partial, at)
		b.mu.Unlock()
	}
}

// run writes the book until Close, and then once more.
func (b *Book) run() {
	ticker := time.NewTicker(writeEvery)
	defer ticker.Stop()
	for last := hourOf(b.config.Now()); ; {
		select {
		case <-ticker.C:
			b.noteFailure(b.write())
		case <-b.stop:
			b.err = b.write()
			return
		}
		now := hourOf(b.config.Now())
		// What a clock says that jumped is believed an hour later.
		if now == last+1 {
			b.noteFailure(b.files.forget(now - kept))
		}
		last = now
	}
}

func (b *Book) noteFailure(err error) {
	if err != nil {
		b.failed.Add(1)
		b.config.Logger.Warn("usage book can't be kept: decisions go on without it", "err", err)
	}
}

// write writes what has changed.
func (b *Book) write() error {
	b.mu.Lock()
	b.turn(hourOf(b.config.Now()))
	// An hour may have begun meanwhile.
	for len(b.partial) > 0 {
		b.mu.Unlock()
		b.complete()
		b.mu.Lock()
	}
	due := maps.Clone(b.closed)
	at := b.at
	if b.changed {
		due[at] = copied(b.book)
		b.changed = false
	}
	b.mu.Unlock()
	var errs []error
	for of, book := range due {
		err := b.files.write(of, book)
		errs = append(errs, err)
		b.mu.Lock()
		switch {
		case err == nil && of != at && b.closed[of] == book:
			delete(b.closed, of)
		case err == nil:
		case err != nil && of == b.at:
			b.changed = true
		case err != nil && b.closed[of] == nil:
			// The hour has ended meanwhile, and nothing more was counted in it.
			b.closed[of] = book
		}
		b.mu.Unlock()
	}
	return errors.Join(errs...)
}

// copied is a book that nobody counts in.
func copied(book *hour) *hour { return &hour{book.names.copied(), book.keys.copied()} }

func (h table) copied() table {
	c := make(table, len(h))
	for e, count := range h {
		one := Count{}
		one.add(*count)
		c[e] = &one
	}
	return c
}

// Close writes what is counted. It says what went wrong with that. Whatever is decided
// afterwards is not written.
func (b *Book) Close() error {
	if b == nil {
		return nil
	}
	b.closing.Do(func() { close(b.stop) })
	b.writer.Wait()
	return b.err
}
