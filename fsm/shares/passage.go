package shares

import (
	"time"

	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/pace"
)

// Passage is how time goes by for the buckets of one key, up to now.
type Passage struct {
	// Pace is how fast the key's own time goes by, nil for as fast as any.
	Pace *pace.Pace
	// Outages are those in which it stands still: those who were cut off have spent what
	// came in.
	Outages []Outage
	Now     bucket.Instant
}

// Bring takes a bucket up to now. withheld is what earlier outages have withheld of it,
// in tokens; it returns what all have: nothing that the bucket had no room for, then or
// since.
func (p Passage) Bring(b *bucket.Bucket, s *bucket.Shape, withheld int64) int64 {
	for _, o := range p.Outages {
		if o.To <= b.Last() {
			continue
		}
		p.advance(b, s, o.From)
		withheld = min(withheld, b.Room(s))
		lost := s.TokensIn(time.Duration(p.elapsed(b.Last(), o.To)))
		withheld = min(add(withheld, lost), b.Room(s))
		b.AdvanceBy(s, o.To, 0)
	}
	p.advance(b, s, p.Now)
	return min(withheld, b.Room(s))
}

func (p Passage) advance(b *bucket.Bucket, s *bucket.Shape, to bucket.Instant) {
	b.AdvanceBy(s, to, p.elapsed(b.Last(), to))
}

func (p Passage) elapsed(from, to bucket.Instant) int64 {
	if p.Pace != nil {
		return p.Pace.Effective(from, to)
	}
	return int64(to - from)
}
