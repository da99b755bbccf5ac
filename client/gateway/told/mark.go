package told

import (
	"context"
	"time"

	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/gateway/circuit"
)

// mark is a slot that is held to say that a circuit was closed, until when.
type mark struct {
	lease client.Lease
	until time.Duration
}

// markOf is the key of the slot that says that a circuit was closed. No letter of another
// key has a "\" before it but that of deployments' slots, which is another one.
func markOf(key circuit.Key) string { return short(`\closed|` + slotOf(key)) }

// look says whether another gateway has closed a circuit a moment ago.
func (p *Prober) look(ctx context.Context, key circuit.Key) bool {
	bounded, cancel := context.WithTimeout(ctx, askMax)
	defer cancel()
	d, err := p.config.Authority.Peek(bounded, "", p.slot(markOf(key))...)
	return err == nil && !d.Granted && isTaken(d)
}

// mark says that a probe has closed its circuit, and only then gives the probe's slot back:
// who looks before asking for that sees the mark.
func (p *Prober) mark(ctx context.Context, won *claim) {
	d, err := p.acquire(ctx, markOf(won.key))
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.rouse()
	p.mu.running--
	p.mu.back = append(p.mu.back, won.lease)
	if err != nil || !d.Granted || d.Source == client.Local {
		return
	}
	until := p.now() + p.config.Mark
	p.mu.marks = append(p.mu.marks, mark{d.Lease, until})
	p.mu.sweep = min(p.mu.sweep, until)
	if p.mu.closed {
		p.unmarkLocked(never)
	}
}

// unmarkLocked has the marks given back whose time is over, and says when the next one is.
func (p *Prober) unmarkLocked(now time.Duration) time.Duration {
	next, left := never, p.mu.marks[:0]
	for _, m := range p.mu.marks {
		if now < m.until {
			next = min(next, m.until)
			left = append(left, m)
		} else {
			p.mu.back = append(p.mu.back, m.lease)
		}
	}
	clear(p.mu.marks[len(left):])
	p.mu.marks = left
	return next
}

// closed says whether another gateway has closed a circuit, once.
func (p *Prober) closed(key circuit.Key) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.mu.claims[key]
	if c == nil || c.state != closed {
		return false
	}
	p.endLocked(c)
	return p.now() < c.until
}
