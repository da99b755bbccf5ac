package state

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/digest"
)

const (
	// MaxReports bounds the reports that are remembered over all sessions (G10).
	// With the longest names they are a little more than a kilobyte each.
	MaxReports = 100_000
	// ReportLife is how long a report is remembered after it last added something,
	// so that a later one books only what is new (T35).
	ReportLife = bucket.Instant(24 * time.Hour)
)

// SessionID is the id that a client's process drew.
type SessionID [16]byte

// ReportID names what one session counts of one bucket. The owner is a part of
// it: nobody can spoil the counts of another credential's session.
type ReportID struct {
	Session SessionID
	Owner   string
	// Class is as reported: empty for the first one.
	Limit, Key, Dimension, Class string
}

// Report is what a session has reported to have admitted by itself. Names are
// kept, not numbers: a limit that is deleted and comes back is the same to a
// client that was cut off.
type Report struct {
	ID         ReportID
	generation uint32
	place      int32
	touched    bool
	// Client is who the work was for, as said last.
	Client string
	// Tokens is the highest count so far; all of it is booked.
	Tokens int64
	// At is when it last grew.
	At, ForgetAt bucket.Instant
	digest       uint64
}

// Key, Generation and Clone are for the table, Place and Before for the queue.
func (r *Report) Key() ReportID         { return r.ID }
func (r *Report) Generation() *uint32   { return &r.generation }
func (r *Report) Place() *int32         { return &r.place }
func (r *Report) Before(o *Report) bool { return r.ID.compare(&o.ID) < 0 }

func (r *Report) Clone() *Report {
	c := *r
	return &c
}

func (id *ReportID) compare(o *ReportID) int {
	return cmp.Or(
		bytes.Compare(id.Session[:], o.Session[:]), strings.Compare(id.Owner, o.Owner),
		strings.Compare(id.Limit, o.Limit), strings.Compare(id.Key, o.Key),
		strings.Compare(id.Dimension, o.Dimension), strings.Compare(id.Class, o.Class),
	)
}

func (r *Report) sum() uint64 {
	sum := digest.New(tagReport)
	sum.Text(string(r.ID.Session[:]))
	sum.Text(r.ID.Owner)
	sum.Text(r.ID.Limit)
	sum.Text(r.ID.Key)
	sum.Text(r.ID.Dimension)
	sum.Text(r.ID.Class)
	sum.Text(r.Client)
	sum.Int(r.Tokens)
	sum.Int(int64(r.At))
	sum.Int(int64(r.ForgetAt))
	return sum.Value()
}

// Reported is the highest count of a session so far, 0 where there is none. One
// that is over counts no more, whether or not the sweep has come to it.
func (s *State) Reported(id ReportID) int64 {
	r := s.reports.Find(id)
	if r == nil || s.Now >= r.ForgetAt {
		return 0
	}
	return r.Tokens
}

// Remembers says whether a count of the session takes no more room than it has.
func (s *State) Remembers(id ReportID) bool { return s.reports.Find(id) != nil }

// SetReported raises a session's count. The caller sees to it that there are at
// most MaxReports.
func (s *State) SetReported(id ReportID, client string, tokens int64) {
	r := s.reports.Find(id)
	if r == nil {
		r = &Report{ID: id}
		s.reports.Insert(r)
		s.dueReports.Set(r, int64(s.Now+ReportLife))
	}
	r = s.touchReport(r)
	r.Client, r.Tokens, r.At, r.ForgetAt = client, tokens, s.Now, s.Now+ReportLife
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
		return cmp.Or(cmp.Compare(b.At, a.At), a.ID.compare(&b.ID))
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
	r.digest = r.sum()
	s.sum += r.digest
}
