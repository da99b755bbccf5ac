package told

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/gateway/circuit"
	"github.com/quorlease/quorlease/client/gateway/internal/bound"
)

// Asker asks the authority for slots, looks whether there are any, and gives them back.
// *client.Client is one.
type Asker interface {
	Acquire(ctx context.Context, r client.Request) (*client.Decision, error)
	Peek(ctx context.Context, class string, charges ...client.Charge) (*client.Decision, error)
	Release(ctx context.Context, lease client.Lease) (*client.Settlement, error)
}

// ProberConfig says which slots are asked for. Only Authority is needed.
type ProberConfig struct {
	Authority Asker
	// Limit names a limit of one slot for each key. Default "circuit-probes":
	//
	//	{name: circuit-probes, per: [key], concurrency: 1, lease: 60s}
	//
	// Its lease should be no shorter than circuit.Config.ProbeMax. With more slots so many
	// gateways probe at once, and none hears from another one that a circuit has closed.
	Limit string
	// Shared gets what circuits publish, and is asked for what they learn: a Teller. Nil:
	// nobody.
	Shared circuit.Shared
	// Again is how long after a no the authority is asked again, 100 ms to 1 min, and up to
	// half as long more by chance. Default 1 s.
	Again time.Duration
	// Unused is how long a slot is held for which no request comes, 100 ms to 1 min.
	// Default 5 s.
	Unused time.Duration
	// Mark is for how long others can see that a circuit was closed, 1 s to 1 min. Default
	// 5 s. It has to be shorter than any circuit is open for, which is circuit.Config.Open
	// and Config.LeastPause: else what closed before it opened last would close it.
	Mark time.Duration
	// Asking is how many questions are asked at once, 1 to 1,024. Default 16.
	Asking int
	// Keys is how many circuits are remembered that are being probed, 16 to 2^20. Default
	// 16,384. Further ones wait.
	Keys int
	// Now is the time. Default time.Now. What a Prober is given as time is not used.
	Now func() time.Time
	// CloseWithin is how long Close goes on giving slots back, up to 1 min. Default 2 s.
	// What is left comes back when its lease ends.
	CloseWithin time.Duration
}

func (c *ProberConfig) defaults() {
	if c.Limit == "" {
		c.Limit = "circuit-probes"
	}
	bound.Default(&c.Again, time.Second)
	bound.Default(&c.Unused, 5*time.Second)
	bound.Default(&c.Mark, 5*time.Second)
	bound.Default(&c.Asking, 16)
	bound.Default(&c.Keys, 16_384)
	bound.Default(&c.CloseWithin, 2*time.Second)
	if c.Now == nil {
		c.Now = time.Now
	}
}

func (c *ProberConfig) validate() error {
	problems := []error{
		limit("limit", c.Limit),
		bound.Within("again", c.Again, 100*time.Millisecond, time.Minute),
		bound.Within("unused", c.Unused, 100*time.Millisecond, time.Minute),
		bound.Within("mark", c.Mark, time.Second, time.Minute),
		bound.Within("asking", c.Asking, 1, 1024),
		bound.Within("keys", c.Keys, 16, 1<<20),
		bound.Within("close within", c.CloseWithin, time.Millisecond, time.Minute),
	}
	if c.Authority == nil {
		problems = append(problems, errors.New("authority: missing"))
	}
	return errors.Join(problems...)
}

// Prober lets that gateway probe a circuit that has the slot which the authority holds for
// it. It is the circuits' Prober and, so that it hears how a probe ended, their Shared;
// what it is told there it passes on.
//
// Who closes a circuit takes a second slot for a moment, the mark, and gives the first one
// back. Others look for the mark before they ask for the slot, and Learn has it for them:
// one probe closes the circuit for all gateways that have work for it. The slot of a probe
// that was refused is kept for as long as the circuit is open: nobody else probes
// meanwhile. After one that told nothing the same gateway probes again, until its time is
// over. While nobody answers, or the limit does not exist or has no slot, each gateway
// probes for itself: a circuit must not stay open for want of one.
//
// It is safe for concurrent use; no method but Close waits for anybody.
type Prober struct {
	config  ProberConfig
	began   time.Time
	wake    chan struct{}
	stop    context.CancelFunc
	joined  chan struct{}
	once    sync.Once
	failure error
	// news is how many circuits others have closed that Learn has not given.
	news atomic.Int64

	mu struct {
		sync.Mutex
		claims map[circuit.Key]*claim
		// wanted are the keys to ask for, won those that a probe has closed, marks the leases
		// that say so, and back those to give back.
		wanted []circuit.Key
		won    []*claim
		marks  []mark
		back   []client.Lease
		// running is how many questions are under way, and left how many slots could not be
		// given back.
		running, left int
		// sweep is when claims are looked through for those that are over.
		sweep  time.Duration
		closed bool
		stats  ProberStats
	}
}

// ProberStats are what a Prober has done since it was made, and what it holds.
type ProberStats struct {
	// Granted counts slots that were had, Denied those that others had, and Alone probes
	// without one, because the authority did not answer.
	Granted, Denied, Alone uint64
	// Unused counts slots for which no request came.
	Unused uint64
	// Closed counts circuits that others have closed.
	Closed uint64
	// Held is how many are held, marks included.
	Held int
}

// NewProber starts a Prober: one goroutine, and one for each question. Close ends them,
// and has to come before the client's. The error names every field that is out of range.
func NewProber(c ProberConfig) (*Prober, error) {
	c.defaults()
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("prober configuration: %w", err)
	}
	p := &Prober{config: c, began: c.Now(), wake: make(chan struct{}, 1), joined: make(chan struct{})}
	p.mu.claims, p.mu.sweep = make(map[circuit.Key]*claim), never
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	go p.run(ctx)
	return p, nil
}

func (p *Prober) now() time.Duration { return p.config.Now().Sub(p.began) }

// Claim says whether this gateway may probe. Where that is not known it is asked in the
// background. now is not looked at.
func (p *Prober) Claim(_ time.Duration, key circuit.Key, most time.Duration) bool {
	now := p.now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.closed {
		return false
	}
	c := p.mu.claims[key]
	switch {
	case c == nil:
	case c.state == asking, c.state == closed && now < c.until:
		return false
	case now >= c.until:
		p.endLocked(c)
	case c.state == granted:
		p.setLocked(c, taken, min(now+most, c.ends))
		return true
	default:
		return c.state == taken
	}
	p.wantLocked(key)
	return false
}

// Publish passes a notice on, and takes in how a probe ended.
func (p *Prober) Publish(now time.Duration, key circuit.Key, n circuit.Notice) {
	if p.config.Shared != nil {
		p.config.Shared.Publish(now, key, n)
	}
	own := p.now()
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.mu.claims[key]
	switch {
	case c == nil || c.state != granted && c.state != taken:
	case n.Closed && c.lease.ID != "":
		delete(p.mu.claims, key)
		p.mu.won = append(p.mu.won, c)
	case n.Closed || n.Wait <= 0:
		p.endLocked(c)
	default:
		p.setLocked(c, kept, min(own+n.Wait, c.ends))
	}
	p.rouse()
}

// Learn is what others have said: what Shared has, or that one of them has closed it.
func (p *Prober) Learn(now time.Duration, key circuit.Key) (circuit.Notice, bool) {
	isClosed := p.news.Load() > 0 && p.closed(key)
	if p.config.Shared != nil {
		if n, news := p.config.Shared.Learn(now, key); news {
			// What closed it was before that, or will be seen again.
			return n, true
		}
	}
	return circuit.Notice{Closed: isClosed, Overloaded: isClosed && key.All}, isClosed
}

// Stats are the figures now.
func (p *Prober) Stats() ProberStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.mu.stats
	s.Held = len(p.mu.marks)
	for _, c := range p.mu.claims {
		if c.lease.ID != "" {
			s.Held++
		}
	}
	return s
}

// Close gives back what is held and joins every goroutine. The error says how many slots
// come back only when their leases end. It is idempotent; later calls wait for the first.
func (p *Prober) Close() error {
	p.once.Do(func() {
		p.mu.Lock()
		p.mu.closed, p.mu.left, p.mu.wanted = true, 0, nil
		for _, c := range p.mu.claims {
			if c.state != asking {
				p.endLocked(c)
			}
		}
		for _, c := range p.mu.won {
			p.mu.back = append(p.mu.back, c.lease)
		}
		p.mu.won = nil
		p.unmarkLocked(never)
		p.mu.Unlock()
		p.rouse()
		limit := time.NewTimer(p.config.CloseWithin)
		defer limit.Stop()
		select {
		case <-p.joined:
		case <-limit.C:
		}
		p.stop()
		<-p.joined
		p.mu.Lock()
		defer p.mu.Unlock()
		if n := len(p.mu.back) + p.mu.left; n > 0 {
			p.failure = fmt.Errorf("close: %d slots of probes were not given back", n)
		}
	})
	return p.failure
}
