package escrow

import (
	"strings"
	"sync"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
)

const (
	// promisesMax bounds the buckets that anybody was told to come back to.
	promisesMax = 1 << 16
	// graceAfter is how long one who comes back on time may be on its way.
	graceAfter = 50 * time.Millisecond
)

// bucketName is one bucket.
type bucketName struct{ limit, key, dimension string }

// Promises are the buckets that somebody was told to come back to at a time: until then
// nobody gets escrow of them, or the promise would be broken (T46, G7). Safe for
// concurrent use.
type Promises struct {
	mu    sync.Mutex
	until map[bucketName]time.Duration
	// full is until when there were more than are kept: everything is promised.
	full time.Duration
}

// Denied notes what an acquire was told. now is authority time, as everywhere here.
func (p *Promises) Denied(now time.Duration, denied *logv1.AcquireResult) {
	if denied.GetGranted() || len(denied.GetDenials()) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range denied.GetDenials() {
		if d.GetRetryAfter() <= 0 || d.GetLimit() == "" {
			continue
		}
		until := now + time.Duration(d.GetRetryAfter()) + graceAfter
		name := bucketName{d.GetLimit(), d.GetKey(), d.GetDimension()}
		p.promiseLocked(now, name, until)
	}
}

func (p *Promises) promiseLocked(now time.Duration, name bucketName, until time.Duration) {
	before, there := p.until[name]
	switch {
	case there:
		p.until[name] = max(before, until)
		return
	case len(p.until) >= promisesMax && !p.purgeLocked(now):
		p.full = max(p.full, until)
		return
	case p.until == nil:
		p.until = make(map[bucketName]time.Duration)
	}
	// A denial's texts may hold on to the whole message of the acquire.
	name.limit, name.dimension = strings.Clone(name.limit), strings.Clone(name.dimension)
	name.key = strings.Clone(name.key)
	p.until[name] = until
}

// purgeLocked forgets what is over, and reports whether there is room now.
func (p *Promises) purgeLocked(now time.Duration) bool {
	if now < p.full {
		// It was looked through already.
		return false
	}
	for name, until := range p.until {
		if until <= now {
			delete(p.until, name)
		}
	}
	return len(p.until) < promisesMax
}

// Wait is how long a bucket is promised to somebody, 0 where it is not.
func (p *Promises) Wait(now time.Duration, op *logv1.AskEscrow) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	until := max(p.full, p.until[bucketName{op.GetLimit(), op.GetKey(), op.GetDimension()}])
	return max(0, until-now)
}
