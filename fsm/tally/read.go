package tally

import (
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/window"
)

// Admitted is what the client was admitted in the window that ends at now: all
// that a decision needs.
func (t *Tally) Admitted(now bucket.Instant) (total, retries int64) {
	first := window.At(int64(now), t.length) - window.Slices + 1
	for i := range t.sources {
		s := &t.sources[i]
		for j := s.search(first); j < len(s.slices); j++ {
			total += s.slices[j].Total
			retries += s.slices[j].Retries
		}
	}
	return total, retries
}

// Recent is what happened in the window that ends at now; Throttled is of the
// last hour.
func (t *Tally) Recent(now bucket.Instant) Count {
	var sum Count
	first := window.At(int64(now), t.length) - window.Slices + 1
	for i := range t.sources {
		s := &t.sources[i]
		for _, one := range s.slices[s.search(first):] {
			sum = sum.Plus(one.Count)
		}
	}
	sum.Throttled = 0
	since := window.At(int64(now), Minute) - hour
	for _, m := range t.minutes {
		if m.at > since {
			sum.Throttled += m.throttled
		}
	}
	return sum
}

// Commonest is the fault of the process that counted most of one, none where no
// fault is in the window that ends at now.
func (t *Tally) Commonest(now bucket.Instant) Fault {
	var most Fault
	gone := window.At(int64(now), t.length) - window.Slices
	for i := range t.sources {
		if s := &t.sources[i]; s.faultAt > gone && s.fault.Times > most.Times {
			most = s.fault
		}
	}
	return most
}

// Counted is what one process has reported of one slice.
func (t *Tally) Counted(from Process, at int64) Count {
	i, found := t.find(from)
	if !found {
		return Count{}
	}
	s := &t.sources[i]
	if j := s.search(at); j < len(s.slices) && s.slices[j].at == at {
		return s.slices[j].Count
	}
	return Count{}
}

// Window is what was admitted, slice by slice, by all processes together.
func (t *Tally) Window() window.Counts {
	var counts window.Counts
	for i := range t.sources {
		for _, one := range t.sources[i].slices {
			if one.Total > 0 || one.Retries > 0 {
				counts.Add(one.at, one.Total, one.Retries)
			}
		}
	}
	return counts
}

// Over says that nothing is left to be remembered at now.
func (t *Tally) Over(now bucket.Instant) bool { return t.windowEnds() <= now && t.hourEnds() <= now }

// Due is when there is something to drop: when the last count leaves the window,
// and after that when the last minute leaves the hour.
func (t *Tally) Due() bucket.Instant {
	if len(t.sources) > 0 {
		return t.windowEnds()
	}
	return t.hourEnds()
}

func (t *Tally) windowEnds() bucket.Instant {
	last := int64(-window.Slices)
	for i := range t.sources {
		last = max(last, t.sources[i].newest())
	}
	return begins(last+window.Slices, int64(t.length))
}

func (t *Tally) hourEnds() bucket.Instant {
	if len(t.minutes) == 0 {
		return 0
	}
	return begins(t.minutes[len(t.minutes)-1].at+hour, int64(Minute))
}

// begins is when a slice begins.
func begins(at, length int64) bucket.Instant {
	if at > int64(never)/length {
		return never
	}
	return bucket.Instant(at * length)
}
