package told

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/gateway/circuit"
)

// state is how far a claim has come.
type state int

// The states.
const (
	// asking: the authority is, or will be.
	asking state = iota
	// refused: another gateway has it. until is when to ask again.
	refused
	// granted: it is held, and until is for how long it waits for a request.
	granted
	// taken: this gateway probes, until its time is over.
	taken
	// kept: the probe was refused, and until is when the circuit may be probed again.
	kept
	// closed: another gateway has closed the circuit, and Learn has not given it. until is
	// for how long that is true.
	closed
)

// claim is what is known of the probe of a circuit. The Prober's lock guards it.
type claim struct {
	key   circuit.Key
	state state
	until time.Duration
	// lease is the slot's, without an id where there is none. ends is when it does.
	lease client.Lease
	ends  time.Duration
}

const (
	// askMax bounds one question: longer than the client takes for its answer.
	askMax = 3 * time.Second
	// sweepGap is how long at least it is not looked again for claims that are over.
	sweepGap = 100 * time.Millisecond
	// keyMax is the longest key of a bucket, in bytes.
	keyMax = 512
)

// wantLocked sees to it that a key is asked for, where there is room.
func (p *Prober) wantLocked(key circuit.Key) {
	if len(p.mu.claims) >= p.config.Keys {
		// Those that were refused go first when their time comes.
		p.rouse()
		return
	}
	key.Tenant, key.Deployment = strings.Clone(key.Tenant), strings.Clone(key.Deployment)
	p.mu.claims[key] = &claim{key: key, state: asking}
	p.mu.wanted = append(p.mu.wanted, key)
	p.rouse()
}

// endLocked forgets a claim, and has its slot given back.
func (p *Prober) endLocked(c *claim) {
	delete(p.mu.claims, c.key)
	if c.state == closed {
		p.news.Add(-1)
	}
	if c.lease.ID != "" {
		p.mu.back = append(p.mu.back, c.lease)
	}
}

func (p *Prober) rouse() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// run asks, gives back, and ends what is over.
func (p *Prober) run(ctx context.Context) {
	defer close(p.joined)
	var asking sync.WaitGroup
	defer asking.Wait()
	timer := time.NewTimer(never)
	defer timer.Stop()
	for ctx.Err() == nil {
		work, wait, done := p.next()
		if done {
			return
		}
		if work != nil {
			asking.Go(func() { work(ctx) })
			continue
		}
		timer.Reset(wait)
		select {
		case <-p.wake:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
}

// next is one piece of work, or for how long there is none. done: there will be none.
func (p *Prober) next() (work func(context.Context), wait time.Duration, done bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if now >= p.mu.sweep {
		p.sweepLocked(now)
	}
	if p.mu.running >= p.config.Asking {
		return nil, never, false
	}
	if n := len(p.mu.back); n > 0 {
		lease := p.mu.back[n-1]
		p.mu.back = p.mu.back[:n-1]
		p.mu.running++
		return func(ctx context.Context) { p.release(ctx, lease) }, 0, false
	}
	if len(p.mu.won) > 0 {
		won := p.mu.won[0]
		p.mu.won = p.mu.won[1:]
		p.mu.running++
		return func(ctx context.Context) { p.mark(ctx, won) }, 0, false
	}
	if len(p.mu.wanted) > 0 {
		key := p.mu.wanted[0]
		p.mu.wanted = p.mu.wanted[1:]
		p.mu.running++
		return func(ctx context.Context) { p.ask(ctx, key) }, 0, false
	}
	return nil, max(0, p.mu.sweep-now), p.mu.closed && p.mu.running == 0
}

// sweepLocked ends what is over, and notes when the next one is.
func (p *Prober) sweepLocked(now time.Duration) {
	next := never
	for _, c := range p.mu.claims {
		switch {
		case c.state == asking:
		case now < c.until:
			next = min(next, c.until)
		default:
			if c.state == granted {
				p.mu.stats.Unused++
			}
			p.endLocked(c)
		}
	}
	next = min(next, p.unmarkLocked(now))
	p.mu.sweep = max(next, now+sweepGap)
}

// setLocked changes a claim until a time.
func (p *Prober) setLocked(c *claim, s state, until time.Duration) {
	c.state, c.until = s, until
	p.mu.sweep = min(p.mu.sweep, until)
}

// ask asks the authority for a slot, unless another gateway has closed the circuit.
func (p *Prober) ask(ctx context.Context, key circuit.Key) {
	isClosed := p.look(ctx, key)
	var d *client.Decision
	var err error
	if !isClosed {
		d, err = p.acquire(ctx, slotOf(key))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.rouse()
	p.mu.running--
	c := p.mu.claims[key]
	now := p.now()
	switch {
	case isClosed:
		p.mu.stats.Closed++
		p.news.Add(1)
		p.setLocked(c, closed, now+p.config.Mark)
	case err != nil || d.Source == client.Local || !d.Granted && !isTaken(d):
		// Nobody can say who else probes.
		p.mu.stats.Alone++
		c.ends = never
		p.setLocked(c, granted, now+p.config.Unused)
	case d.Granted:
		p.mu.stats.Granted++
		c.lease, c.ends = d.Lease, d.Lease.Ends.Sub(p.began)
		p.setLocked(c, granted, min(now+p.config.Unused, c.ends))
	default:
		p.mu.stats.Denied++
		p.setLocked(c, refused, now+p.config.Again+rand.N(p.config.Again/2))
	}
	if p.mu.closed {
		p.endLocked(c)
	}
}

// acquire asks for the slot of a key.
func (p *Prober) acquire(ctx context.Context, key string) (*client.Decision, error) {
	bounded, cancel := context.WithTimeout(ctx, askMax)
	defer cancel()
	return p.config.Authority.Acquire(bounded, client.Request{Track: true, Charges: p.slot(key)})
}

// isTaken says whether a slot is another one's.
func isTaken(d *client.Decision) bool {
	return len(d.Denials) > 0 && d.Denials[0].Reason == "CONCURRENCY"
}

// slot is one slot of a key.
func (p *Prober) slot(key string) []client.Charge {
	return []client.Charge{{Limit: p.config.Limit, Key: key, Dimension: "slots", Amount: 1}}
}

// release gives a slot back. One that can't be given back ends with its lease.
func (p *Prober) release(ctx context.Context, lease client.Lease) {
	bounded, cancel := context.WithTimeout(ctx, askMax)
	defer cancel()
	_, err := p.config.Authority.Release(bounded, lease)
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.rouse()
	p.mu.running--
	if err != nil && p.config.Now().Before(lease.Ends) {
		p.mu.left++
	}
}

// slotOf is the key of a circuit's slots. That of a deployment can't be that of a tenant,
// where no letter has a "\" before it.
func slotOf(key circuit.Key) string {
	text := bucketOf(circuit.Key{Tenant: key.Tenant, Deployment: key.Deployment})
	if key.All {
		text = `\all|` + escape.Replace(key.Deployment)
	}
	return short(text)
}

// short is a text that may be the key of a bucket.
func short(text string) string {
	if len(text) <= keyMax {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
