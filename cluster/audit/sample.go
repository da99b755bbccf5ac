package audit

import "sync/atomic"

// Whole is all grants, in hundredths of a percent.
const Whole = 10_000

// sampler says which grants are written.
type sampler struct {
	// part is in hundredths of a percent.
	part int64
	// nameless counts grants without a lease id.
	nameless atomic.Int64
}

// takes says whether the grant with a lease id is written. It follows from the id and
// the part alone: a grant whose answer was lost, and that another node is asked for, is
// written there too or not at all, and nobody can see to it that he is never in it. Of
// grants without an id every so many is.
func (s *sampler) takes(id []byte) bool {
	switch {
	case s.part >= Whole:
		return true
	case len(id) > 0:
		return int64(mixed(id)%Whole) < s.part
	}
	n := s.nameless.Add(1)
	return n*s.part/Whole != (n-1)*s.part/Whole
}

// mixed is FNV-1a with the finish of a better hash, so that ids which differ in few bits
// are spread evenly.
func mixed(id []byte) uint64 {
	h := uint64(0xcbf29ce484222325)
	for _, b := range id {
		h = (h ^ uint64(b)) * 0x100000001b3
	}
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
