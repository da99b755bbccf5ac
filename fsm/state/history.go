package state

import (
	"slices"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/record"
)

// Bounds of the history. Of a change that is larger by itself only the names are
// kept.
const (
	maxRevisions     = 256
	maxRevisionBytes = 4 << 20
)

// Revision is one change of limits and retry budgets. It must not be changed.
type Revision = record.Revision

// history keeps the last changes, the oldest first.
type history struct {
	list  []*Revision
	bytes int
}

// Remember adds a revision and forgets the oldest beyond the bounds.
func (s *State) Remember(r *Revision) {
	r.Measure()
	if r.Size > maxRevisionBytes {
		names := make([]*logv1.LimitChange, len(r.Changes))
		for i, c := range r.Changes {
			names[i] = &logv1.LimitChange{Name: c.GetName()}
		}
		r.Changes = names
		r.Measure()
	}
	s.history.list = append(s.history.list, r)
	s.history.bytes += r.Size
	s.sum += r.Sum()
	gone := 0
	for len(s.history.list)-gone > maxRevisions || s.history.bytes > maxRevisionBytes {
		s.history.bytes -= s.history.list[gone].Size
		s.sum -= s.history.list[gone].Sum()
		gone++
	}
	if gone > 0 {
		s.history.list = slices.Clone(s.history.list[gone:])
	}
}

// History is the last n changes, the newest first; all that are kept where n is
// 0.
func (s *State) History(n int) []*Revision {
	list := slices.Clone(s.history.list)
	slices.Reverse(list)
	if n > 0 && n < len(list) {
		list = list[:n]
	}
	return list
}
