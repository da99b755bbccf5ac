package state

import (
	"cmp"
	"slices"

	"github.com/quorlease/quorlease/fsm/record"
)

// MaxReports bounds the reports that are remembered over all sessions (G10).
// With the longest names they are a little more than a kilobyte each.
const MaxReports = 100_000

// Report is a record of what a session admitted by itself, at work.
type Report struct {
	record.Report
	generation uint32
	place      int32
	touched    bool
	digest     uint64
}

// Key, Generation and Clone are for the table, Place and Before for the queue.
func (r *Report) Key() record.ReportID  { return r.ID }
func (r *Report) Generation() *uint32   { return &r.generation }
func (r *Report) Place() *int32         { return &r.place }
func (r *Report) Before(o *Report) bool { return r.ID.Compare(&o.ID) < 0 }

func (r *Report) Clone() *Report {
	c := *r
	return &c
}

// Reported is the highest count of a session so far, 0 where there is none. One
// that is over counts no more, whether or not the sweep has come to it.
func (s *State) Reported(id record.ReportID) int64 {
	r := s.reports.Find(id)
	if r == nil || s.Now >= r.ForgetAt {
		return 0
	}
	return r.Tokens
}

// Settled is how much of what outages left to a session it has accounted for at a bucket,
// see shares.Book.Earned.
func (s *State) Settled(id record.ReportID) int64 {
	r := s.reports.Find(id)
	if r == nil || s.Now >= r.ForgetAt {
		return 0
	}
	return r.Settled
}

// Remembers says whether a count of the session takes no more room than it has.
func (s *State) Remembers(id record.ReportID) bool { return s.reports.Find(id) != nil }

// SetReported raises a session's counts, but for At and ForgetAt. The caller sees to it
// that there are at most MaxReports.
func (s *State) SetReported(one record.Report) {
	id := one.ID
	r := s.reports.Find(id)
	if r == nil {
		r = &Report{Report: one}
		s.reports.Insert(r)
		s.dueReports.Set(r, int64(s.Now+record.ReportLife))
	}
	r = s.touchReport(r)
	r.Report = one
	r.At, r.ForgetAt = s.Now, s.Now+record.ReportLife
	s.dueReports.Set(r, int64(r.ForgetAt))
}

// Reports is the number of reports that are remembered.
func (s *State) Reports() int { return s.reports.Len() }

// ReportsOf are the reports of a key, the latest first, at most so many. They
// must not be changed. It walks all reports: there are few, and it is for
// people.
func (s *State) ReportsOf(limit, key string, most int) []*Report {
	var list []*Report
	// The order does not matter: the list is sorted below.
	for r := range s.reports.All() {
		if r.ID.Limit == limit && r.ID.Key == key && s.Now < r.ForgetAt {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b *Report) int {
		return cmp.Or(cmp.Compare(b.At, a.At), a.ID.Compare(&b.ID))
	})
	return list[:min(len(list), most)]
}

// ForgetReports forgets reports whose time is over, at most as many.
func (s *State) ForgetReports(most int) {
	for range most {
		r, at := s.dueReports.Top()
		if at > int64(s.Now) {
			return
		}
		s.sum -= r.digest
		s.dueReports.Remove(r)
		s.reports.Remove(r)
	}
}

func (s *State) touchReport(r *Report) *Report {
	if r.touched {
		return r
	}
	own := s.reports.Own(r)
	if own != r {
		s.dueReports.Renew(own)
	}
	own.touched = true
	s.sum -= own.digest
	s.touched.reports = append(s.touched.reports, own)
	return own
}

func (s *State) sealReport(r *Report) {
	if !r.touched {
		return
	}
	r.touched = false
	r.digest = r.Sum()
	s.sum += r.digest
}
