package charge

import (
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorlease/quorlease/client"
)

// plan is what the authority charged for some work, and so what it charges for all that
// says the same, while the limits are what they are. It does not change.
type plan struct {
	client, class string
	attributes    map[string]string
	// amounts are the names of those that were said.
	amounts []string
	// parts are what pays for it. None: it always asks, because it has slots, or charges
	// that do not follow from what it says.
	parts []*tap
	// life is how long the leases of these limits last, the shortest.
	life time.Duration
	// until is for how long it is good, end when nobody may use it any more.
	until, end time.Duration
	// asking: a call is on its way that finds out anew. stale: one has to.
	asking, stale atomic.Bool
	// used is when it was last looked up.
	used atomic.Int64
}

// plans are those that are remembered, by a hash of what work says. It is safe for
// concurrent use.
type plans struct {
	seed maphash.Seed
	most int

	mu    sync.RWMutex
	bySum map[uint64]*plan
}

func newPlans(most int) *plans {
	return &plans{seed: maphash.MakeSeed(), most: most, bySum: make(map[uint64]*plan)}
}

// sum is a hash of everything but the amounts themselves. The order of a map does not
// matter: what is in it is added up.
func (s *plans) sum(w *Work) uint64 {
	total := s.text(1, w.Client) + s.text(2, w.Class)
	for name, value := range w.Attributes {
		total += s.text(s.text(3, name), value)
	}
	for name := range w.Amounts {
		total += s.text(4, name)
	}
	return total
}

// text is a hash of a text that follows another one.
func (s *plans) text(before uint64, text string) uint64 {
	// splitmix64's last steps, so that sums of such hashes tell what was where.
	z := before*0x9e3779b97f4a7c15 ^ maphash.String(s.seed, text)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// find is the plan of work, nil where none is remembered.
func (s *plans) find(now time.Duration, sum uint64, w *Work) *plan {
	s.mu.RLock()
	p := s.bySum[sum]
	s.mu.RUnlock()
	if p == nil || !p.isFor(w) {
		return nil
	}
	touch(&p.used, now)
	return p
}

// touch notes that something is used. Not each time: whoever does it waits for no other
// processor's word.
func touch(used *atomic.Int64, now time.Duration) {
	if int64(now)-used.Load() > int64(100*time.Millisecond) {
		used.Store(int64(now))
	}
}

// keep remembers a plan, in the place of an older one. Where there is no room one of
// those goes that were not used for long.
func (s *plans) keep(sum uint64, p *plan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bySum[sum] == nil && len(s.bySum) >= s.most {
		s.forgetLocked()
	}
	s.bySum[sum] = p
}

// forgetLocked forgets the plan that was not used for longest of some that chance picks.
func (s *plans) forgetLocked() {
	var oldest uint64
	var used int64
	picked := 0
	for sum, p := range s.bySum {
		if at := p.used.Load(); picked == 0 || at < used {
			oldest, used = sum, at
		}
		if picked++; picked == 16 {
			break
		}
	}
	delete(s.bySum, oldest)
}

// forget forgets a plan that turned out to be wrong.
func (s *plans) forget(sum uint64, p *plan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bySum[sum] == p {
		delete(s.bySum, sum)
	}
}

// sweep forgets what was not used since.
func (s *plans) sweep(since time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for sum, p := range s.bySum {
		if p.used.Load() < int64(since) {
			delete(s.bySum, sum)
		}
	}
}

func (s *plans) len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.bySum)
}

// planOf makes a plan of what the authority has charged just now.
func (d *Desk) planOf(now time.Duration, w *Work, lease *client.Lease) *plan {
	p := &plan{
		client: strings.Clone(w.Client), class: strings.Clone(w.Class),
		attributes: make(map[string]string, len(w.Attributes)),
		life:       d.clock.At(lease.Ends) - now,
		until:      now + d.config.PlanLife, end: now + 2*d.config.PlanLife,
	}
	p.used.Store(int64(now))
	// A value may be a part of something large.
	for name, value := range w.Attributes {
		p.attributes[strings.Clone(name)] = strings.Clone(value)
	}
	for name := range w.Amounts {
		p.amounts = append(p.amounts, strings.Clone(name))
	}
	for i := range lease.Charges {
		c := &lease.Charges[i]
		if c.Dimension == slots || c.Amount != w.amount(c.Dimension) {
			p.parts = nil
			break
		}
		t := d.taps.of(now, bucket{c.Limit, c.Key, c.Dimension}, p.class)
		if t == nil {
			p.parts = nil
			break
		}
		p.parts = append(p.parts, t)
	}
	return p
}
