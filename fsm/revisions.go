package fsm

import (
	"slices"

	"google.golang.org/protobuf/proto"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// Bounds of the history. Of a change that is larger by itself only the names are
// kept.
const (
	historyMost      = 256
	historyBytesMost = 4 << 20
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

// remember adds a revision and forgets the oldest beyond the bounds.
func (m *Machine) remember(r *Revision) {
	r.size = revisionSize(r)
	if r.size > historyBytesMost {
		names := make([]*logv1.LimitChange, len(r.Changes))
		for i, c := range r.Changes {
			names[i] = &logv1.LimitChange{Name: c.GetName()}
		}
		r.Changes = names
		r.size = revisionSize(r)
	}
	m.history.list = append(m.history.list, r)
	m.history.bytes += r.size
	m.sum += sumRevision(r)
	gone := 0
	for len(m.history.list)-gone > historyMost || m.history.bytes > historyBytesMost {
		m.history.bytes -= m.history.list[gone].size
		m.sum -= sumRevision(m.history.list[gone])
		gone++
	}
	if gone > 0 {
		m.history.list = slices.Clone(m.history.list[gone:])
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
func (m *Machine) History(n int) []*Revision {
	list := slices.Clone(m.history.list)
	slices.Reverse(list)
	if n > 0 && n < len(list) {
		list = list[:n]
	}
	return list
}
