package escrow

import (
	"math"
	"slices"
	"time"
)

// holding is what the wallet has of one key. All of it is guarded by the lock of its
// shard, but for due.
type holding struct {
	book  *book
	shard *shard
	key   string
	pots  []pot
	// dimensions are the key's own numbers, as of the book's turn.
	dimensions []Dimension
	turn       uint64
	// queued: the steward is about to look.
	queued bool
	// dropped: the wallet knows it no more.
	dropped bool
	// voids is how often what is held of it was made void.
	voids uint64
	// due is when the next alarm for it rings; 0: none is set. The wallet's lock guards it.
	due time.Duration
}

// pot is what it has of one dimension for one class.
type pot struct {
	// portions are what may be spent, the oldest first.
	portions []*portion
	demand   demand
	// warm: it is likely to be used, and asks without having been.
	warm bool
	// ask is the one in flight.
	ask *ask
	// noTurn is the book's turn in which it was told that there is none.
	noTurn uint64
	// notBefore is when to ask again, pause what the last wait was.
	notBefore, pause time.Duration
}

// portion is what one ask brought.
type portion struct {
	sequence uint64
	// unspent can be granted; reserved is on its way to pay for leases.
	unspent, reserved int64
	// since is when it came, until when the node stops spending it.
	since, until time.Duration
	// void: nothing of it is ever spent again. returned: it was sent back, and may be
	// gone.
	void, returned bool
	at             *holding
	pot            int
	// born is the holding's voids when it came.
	born uint64
}

// isVoid says whether it was made void, be it while it was on its way back, where nobody
// finds it among the portions.
func (p *portion) isVoid() bool { return p.void || p.born != p.at.voids }

// burstLocked is the effective burst of a pot, 0 where it can have no escrow.
func (h *holding) burstLocked(i int) int64 {
	terms := h.book.terms.Load()
	if turn := h.book.turn.Load(); h.turn != turn {
		h.dimensions, h.turn = terms.forKey(h.key), turn
	}
	return terms.burst(h.dimensions, i)
}

// leftLocked is what may be spent at now.
func (p *pot) leftLocked(now time.Duration) int64 {
	sum := int64(0)
	for _, one := range p.portions {
		if now < one.until {
			sum += one.unspent
		}
	}
	return sum
}

// spendLocked takes n tokens, which are there, the oldest first.
func (p *pot) spendLocked(now time.Duration, n int64) {
	p.demand.count(now, n)
	for _, one := range p.portions {
		if now >= one.until {
			continue
		}
		taken := min(n, one.unspent)
		one.unspent -= taken
		if n -= taken; n == 0 {
			return
		}
	}
}

// drainLocked takes out all that is unspent, for a return, which is made where there is
// anything and none yet.
func (p *pot) drainLocked(now time.Duration, r *Return) *Return {
	if len(p.portions) == 0 {
		return r
	}
	for _, one := range p.portions {
		if one.unspent == 0 || now >= one.until || r != nil && len(r.parts) >= returnsMax {
			continue
		}
		if r == nil {
			r = &Return{}
		}
		r.add(one)
	}
	p.portions = slices.DeleteFunc(p.portions, func(one *portion) bool { return one.unspent+one.reserved == 0 })
	return r
}

// youngestLocked is the life that the youngest tokens have left, negative for none.
func (p *pot) youngestLocked(now time.Duration) time.Duration {
	life := time.Duration(-1)
	for _, one := range p.portions {
		if one.unspent > 0 {
			life = max(life, one.until-now)
		}
	}
	return life
}

// demand is what was granted of a pot, as a mean over about a second.
type demand struct {
	// recent was granted since folded, mean before, in tokens a second.
	recent, mean int64
	folded       time.Duration
	// largest is about the largest amount of late.
	largest int64
	// last and before are when it was granted last, and the time before; 0: never.
	last, before time.Duration
}

const (
	foldEvery = 100 * time.Millisecond
	meanOver  = time.Second
	// countMax keeps products of counts and milliseconds below 2^63.
	countMax = 1 << 50
)

// count counts what was granted.
func (d *demand) count(now time.Duration, n int64) {
	d.recent = min(countMax, d.recent+n)
	d.largest = max(d.largest, n)
	d.before, d.last = d.last, max(1, now)
	if now-d.folded >= foldEvery {
		d.fold(now)
	}
}

// fold takes what was granted of late into the mean.
func (d *demand) fold(now time.Duration) {
	passed := now - d.folded
	if passed < foldEvery {
		return
	}
	over := meanOver.Milliseconds()
	if passed >= meanOver {
		d.mean = d.recent * over / passed.Milliseconds()
	} else {
		d.mean = min(countMax, d.mean-d.mean*passed.Milliseconds()/over+d.recent)
	}
	if d.recent == 0 {
		d.largest -= (d.largest + 7) / 8
	}
	d.recent, d.folded = 0, now
}

// over is what is likely to be granted in a time.
func (d *demand) over(t time.Duration) int64 {
	rate := max(d.mean, d.recent)
	if rate == 0 {
		return 0
	}
	return max(1, min(countMax, rate)/1000*t.Milliseconds()+min(countMax, rate)%1000*t.Milliseconds()/1000)
}

// needs is what should be there to grant from for a time, all by itself: what is likely
// to be granted, and two deviations of callers who come as they like.
func (d *demand) needs(t time.Duration) int64 {
	likely := d.over(t)
	return likely + int64(2*math.Sqrt(float64(likely)*float64(max(1, d.largest))))
}
