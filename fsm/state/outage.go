package state

import (
	"github.com/quorlease/quorlease/fsm/lineage"
	"github.com/quorlease/quorlease/fsm/shares"
)

// Passage is how time goes by for a key of a limit up to now; k is nil for one never
// seen.
func (s *State) Passage(lim *Limit, k *Key) shares.Passage {
	p := shares.Passage{Now: s.Now}
	if c := s.ControlOf(k); c != nil {
		p.Pace = &c.Pace
	}
	p.Outages = s.Shares.Outages(lim.Name)
	return p
}

// live takes the buckets of a key up to now whose time does not go by as any: feedback
// controls it, or there were outages. All others are taken along by those who ask for
// them.
func (s *State) live(lim *Limit, k *Key) {
	p := s.Passage(lim, k)
	if p.Pace == nil && p.Outages == nil && (k.rare == nil || k.rare.withheld == nil) {
		return
	}
	v := lim.Now().For(k.Name)
	for i := range v.Dimensions {
		k.SetWithheld(i, p.Bring(&k.Held(i).Bucket, v.Dimensions[i].Shape, k.Withheld(i)))
	}
}

// Withheld is what outages withheld of a bucket and nobody has got back, in tokens: for
// reports that say that less was used. There is always room for it in the bucket.
func (k *Key) Withheld(i int) int64 {
	if k.rare == nil || k.rare.withheld == nil {
		return 0
	}
	return k.rare.withheld[i]
}

// SetWithheld changes what is withheld of a bucket of a touched key.
func (k *Key) SetWithheld(i int, tokens int64) {
	if tokens == k.Withheld(i) {
		return
	}
	if k.rare == nil {
		k.rare = &rare{}
	}
	if k.rare.withheld == nil {
		of := 1
		if k.rest != nil {
			of += len(*k.rest)
		}
		k.rare.withheld = make([]int64, of)
	}
	k.rare.withheld[i] = tokens
	k.rare = k.rare.tidied()
}

// forfeit lets go of what is withheld of buckets that are no more.
func (k *Key) forfeit() {
	if k.rare != nil {
		k.rare.withheld = nil
		k.rare = k.rare.tidied()
	}
}

// Withhold takes an outage in that is about to end: limits of which shares were promised
// hand nothing out of it. Now is still that of its beginning.
func (s *State) Withhold(o shares.Outage) {
	// The order does not matter: each limit is changed by itself.
	for _, name := range s.Shares.Promised() {
		lim := s.FindLimit(name)
		if lim == nil || !shares.Withholds(lim.Limit) {
			continue
		}
		if len(s.Shares.Outages(name)) == shares.MaxOutages {
			s.outlive(lim)
		}
		s.Shares.Withhold(name, o)
	}
	s.Shares.Endure(o)
}

// outlive takes every key of a limit up to now, and forgets its outages.
func (s *State) outlive(lim *Limit) {
	// The order does not matter, and no key moves in the queue until the entry is sealed.
	for k := range lim.keys.All() {
		s.ChangeKey(lim, k)
	}
	s.Shares.Outlived(lim.Name)
}

// changes says that keys of a limit can't live through outages any more as they would
// have to: they pass to another version, or nothing is withheld any more.
func (s *State) changes(lim *Limit, next *lineage.Lineage) bool {
	return len(s.Shares.Outages(lim.Name)) > 0 &&
		(!shares.Withholds(next.Limit) || next.Now().Number != lim.Now().Number)
}
