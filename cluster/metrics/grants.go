package metrics

import (
	"slices"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/retries"
)

// The places where an acquire is decided, as positions in sourceNames.
const (
	fromHere = iota
	fromConsensus
	fromEscrow
	sources
)

var sourceNames = [sources]string{fromHere: "", fromConsensus: "consensus", fromEscrow: "escrow"}

func sourceOf(result *logv1.AcquireResult) int {
	switch {
	case result.GetEscrow():
		return fromEscrow
	case retries.DecidedHere(result):
		return fromHere
	default:
		return fromConsensus
	}
}

// grants are the counters of one limit's grants, which are most of what is counted:
// to find one by its labels takes longer than all else that an answer costs.
type grants struct {
	// classes are the names of classes that become labels, the empty one first.
	classes []string
	counts  [sources][]atomic.Pointer[prometheus.Counter]
}

func newGrants(limit *logv1.Limit) *grants {
	s := &grants{classes: []string{""}}
	for _, c := range limit.GetClasses() {
		s.classes = append(s.classes, c.GetName())
	}
	for i := range s.counts {
		s.counts[i] = make([]atomic.Pointer[prometheus.Counter], len(s.classes))
	}
	return s
}

// class is the position of a class; 0 for none that the limit has.
func (s *grants) class(name string) int { return max(0, slices.Index(s.classes, name)) }

// grantsOf is nil for a limit that is not known.
func (m *Set) grantsOf(limit string) *grants {
	known := m.known.Load()
	if known == nil {
		return nil
	}
	return (*known)[limit]
}

// grant counts a grant.
func (m *Set) grant(limit, class string, source int) {
	s := m.grantsOf(limit)
	if s == nil {
		m.decisions.WithLabelValues("", "", "granted", "", sourceNames[source]).Inc()
		return
	}
	i := s.class(class)
	kept := &s.counts[source][i]
	counter := kept.Load()
	if counter == nil {
		one := m.decisions.WithLabelValues(limit, s.classes[i], "granted", "", sourceNames[source])
		counter = &one
		kept.Store(counter)
	}
	(*counter).Inc()
}
