package state

// touched lists the records that the entry has changed.
type touched struct {
	limits  []*Limit
	keys    []*Key
	leases  []*Lease
	clients []*Client
	reports []*Report
}

// Seal ends an entry: what was touched gets its new digest and its new place
// among what is due.
func (s *State) Seal() {
	for _, k := range s.touched.keys {
		s.SealKey(k)
	}
	for _, l := range s.touched.leases {
		s.sealLease(l)
	}
	for _, c := range s.touched.clients {
		s.sealClient(c)
	}
	for _, r := range s.touched.reports {
		s.sealReport(r)
	}
	for _, lim := range s.touched.limits {
		s.sealLimit(lim)
	}
	s.touched.reset()
}

// reset keeps the lists for the next entry, unless they have become large.
func (t *touched) reset() {
	t.limits = emptied(t.limits)
	t.keys = emptied(t.keys)
	t.leases = emptied(t.leases)
	t.clients = emptied(t.clients)
	t.reports = emptied(t.reports)
}

func emptied[T any](list []*T) []*T {
	const keep = 8192
	if cap(list) > keep {
		return nil
	}
	clear(list)
	return list[:0]
}
