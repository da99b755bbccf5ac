package state

import (
	"slices"

	"google.golang.org/protobuf/proto"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// Bounds of the history. Of a change that is larger by itself only the names are
// kept.
const (
	maxRevisions     = 256
	maxRevisionBytes = 4 << 20
)

// Revision is one change of limits and retry budgets. It must not be changed.
type Revision struct {
	Revision uint64
	// Now is authority time, Wall the leader's wall clock in Unix nanoseconds.
	Now     bucket.Instant
	Wall    int64
	Author  string
	Changes []*logv1.LimitChange
	size    int
}

// history keeps the last changes, the oldest first.
type history struct {
	list  []*Revision
	bytes int
}

// Remember adds a revision and forgets the oldest beyond the bounds.
func (s *State) Remember(r *Revision) {
	r.size = revisionSize(r)
	if r.size > maxRevisionBytes {
		names := make([]*logv1.LimitChange, len(r.Changes))
		for i, c := range r.Changes {
			names[i] = &logv1.LimitChange{Name: c.GetName()}
		}
		r.Changes = names
		r.size = revisionSize(r)
	}
	s.history.list = append(s.history.list, r)
	s.history.bytes += r.size
	s.sum += sumRevision(r)
	gone := 0
	for len(s.history.list)-gone > maxRevisions || s.history.bytes > maxRevisionBytes {
		s.history.bytes -= s.history.list[gone].size
		s.sum -= sumRevision(s.history.list[gone])
		gone++
	}
	if gone > 0 {
		s.history.list = slices.Clone(s.history.list[gone:])
	}
}

// revisionSize is the size on the wire, which is the same everywhere even where
// the bytes are not.
func revisionSize(r *Revision) int {
	size := len(r.Author)
	for _, c := range r.Changes {
		size += proto.Size(c)
	}
	return size
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
