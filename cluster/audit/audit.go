package audit

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/events"
	"github.com/quorlease/quorlease/cluster/metrics"
)

const (
	// queued is how many decisions wait for the file at most, changed how many changes: more
	// than one file of limits makes, and they don't go short because of decisions.
	queued, changed = 8192, 1 << 16
	// batchMost is how many bytes are written at once, one line more or less, and gather
	// how long lines wait for others: many small writes cost the log on the same disk more
	// than their bytes do.
	batchMost = 64 << 10
	gather    = 100 * time.Millisecond
	// quiet is how long nothing is said of drops after something was.
	quiet = time.Minute
)

// Config says where decisions are written. Path, Bytes, Keep and Sample are the
// operator's.
type Config struct {
	// Path is the file; empty: nothing is written.
	Path string
	// Bytes is how long the file gets before it is renamed. At least 1.
	Bytes int64
	// Keep is how many old files stay beside it. At least 1.
	Keep int
	// Sample is how many of the grants are written, in hundredths of a percent, 0 to
	// Whole. Denials and changes always are.
	Sample int64

	// Node is written into each line.
	Node string
	// Now is the wall clock. Nil: the machine's.
	Now func() time.Time
	// Metrics, Events and Logger hear of what is lost.
	Metrics *metrics.Set
	Events  *events.Ring
	Logger  hclog.Logger
}

// Log is the file. A nil Log records nothing. Safe for concurrent use.
type Log struct {
	config Config
	to     rolling
	queue  chan Decision
	// crowded wakes the writer before the queue is full, told when there is a change.
	crowded, told chan struct{}
	sample        sampler
	// stop is closed by Close, once.
	stop    chan struct{}
	closing sync.Once
	writer  sync.WaitGroup
	err     error

	dropped, failed atomic.Uint64
	// said is when a drop was last said, in nanoseconds of the wall clock.
	said atomic.Int64
	mu   sync.Mutex
	// changes are what an operator did. The lock is held for them alone, and never for long.
	changes []Change
	// failing: the last write failed. It belongs to the writer, and so do lines and
	// count, which are to be written.
	failing bool
	lines   []byte
	count   uint64
}

// Open opens the file and begins to write; nil where there is no path. Close
// releases it.
func Open(c Config) (*Log, error) {
	if c.Path == "" {
		return nil, nil //nolint:nilnil // no file is no error, and a nil Log records nothing
	}
	return open(c, openFile)
}

func open(c Config, how func(string) (file, int64, error)) (*Log, error) {
	l := &Log{
		config: c, queue: make(chan Decision, queued), stop: make(chan struct{}),
		to: rolling{path: c.Path, most: c.Bytes, keep: c.Keep, open: how}, sample: sampler{part: c.Sample},
		crowded: make(chan struct{}, 1), told: make(chan struct{}, 1),
	}
	if c.Now == nil {
		l.config.Now = time.Now
	}
	if err := l.to.reopen(); err != nil {
		return nil, err
	}
	c.Metrics.Counter("quorlease_audit_dropped_total",
		"Lines that are not in the audit file because its queue was full.", l.dropped.Load)
	c.Metrics.Counter("quorlease_audit_failed_total",
		"Lines that are not in the audit file because it could not be written.", l.failed.Load)
	l.writer.Go(l.run)
	return l, nil
}

// Decided records the answer to an acquire. It never waits, and keeps nothing of
// its arguments but texts.
func (l *Log) Decided(op *logv1.Acquire, attempt uint32, result *logv1.AcquireResult) {
	if l == nil || result.GetGranted() && !l.sample.takes(op.GetLeaseId()) {
		return
	}
	d := of(op, attempt, result)
	d.Time, d.Node = l.config.Now().UTC(), l.config.Node
	if result.GetGranted() && l.sample.part < Whole {
		d.SampleBp = l.sample.part
	}
	select {
	case l.queue <- d:
		if len(l.queue) >= queued/2 {
			select {
			case l.crowded <- struct{}{}:
			default:
			}
		}
	default:
		l.drop(d.Time)
	}
}

// Changed records what an operator did. It never waits.
func (l *Log) Changed(changes ...Change) {
	if l == nil {
		return
	}
	l.mu.Lock()
	before := len(l.changes)
	l.changes = append(l.changes, changes[:min(len(changes), changed-before)]...)
	taken := l.changes[before:]
	for i := range taken {
		taken[i].Node = l.config.Node
	}
	l.mu.Unlock()
	select {
	case l.told <- struct{}{}:
	default:
	}
	for range changes[len(taken):] {
		l.drop(l.config.Now())
	}
}

// drop counts, and says so once a minute at most.
func (l *Log) drop(at time.Time) {
	total := l.dropped.Add(1)
	said := l.said.Load()
	// A clock that was set back does not say how long ago that was.
	ago := at.UnixNano() - said
	if said != 0 && ago >= 0 && ago < int64(quiet) || !l.said.CompareAndSwap(said, at.UnixNano()) {
		return
	}
	l.config.Events.Publish(events.Event{
		Kind: events.AuditDropped, Severity: events.Warning, Node: l.config.Node, Value: fmt.Sprint(total),
		Text: fmt.Sprintf("%d lines so far are not in the audit file: it is written too slowly", total),
	})
	l.config.Logger.Warn("audit file is written too slowly", "dropped", total)
}

// run writes what is queued until Close, and then the rest. It sleeps while lines
// gather: to be woken by each would cost a decision more than its line does.
func (l *Log) run() {
	timer := time.NewTimer(gather)
	defer timer.Stop()
	for {
		select {
		case d := <-l.queue:
			l.add(&d)
		case <-l.told:
		case <-l.stop:
			l.drain()
			l.err = l.to.close()
			return
		}
		timer.Reset(gather)
		select {
		case <-timer.C:
		case <-l.crowded:
		case <-l.stop:
		}
		l.drain()
	}
}

// drain writes what is queued.
func (l *Log) drain() {
	l.mu.Lock()
	changes := l.changes
	l.changes = nil
	l.mu.Unlock()
	for i := range changes {
		l.add(&changes[i])
	}
	for {
		select {
		case d := <-l.queue:
			l.add(&d)
		default:
			l.flush()
			return
		}
	}
}

// add gathers a line, and writes where there are enough.
func (l *Log) add(line appender) {
	l.lines = line.append(l.lines)
	if l.count++; len(l.lines) >= batchMost {
		l.flush()
	}
}

// flush writes the lines.
func (l *Log) flush() {
	if l.count > 0 {
		l.wrote(l.count, l.to.write(l.lines))
	}
	l.lines, l.count = l.lines[:0], 0
}

// appender is a line.
type appender interface{ append(to []byte) []byte }

// wrote counts what is lost with an error, and logs the first of a row of them.
func (l *Log) wrote(n uint64, err error) {
	if err == nil {
		l.failing = false
		return
	}
	l.failed.Add(n)
	if !l.failing {
		l.failing = true
		l.config.Logger.Error("audit file can't be written: decisions go on without it", "err", err)
	}
}

// Close writes what is queued and closes the file. It says what went wrong with
// that. Whatever is decided afterwards is not written.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	l.closing.Do(func() { close(l.stop) })
	l.writer.Wait()
	return l.err
}
