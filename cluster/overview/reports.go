package overview

import (
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/tally"
)

// Reports is what the reports of retries in one entry add. They are cumulative, may be
// lost and may come again, so what one adds is what the replica counts after the entry
// and did not count before. Nil: the entry has none.
type Reports struct{ list []added }

// added is one client in one slice of one process.
type added struct {
	from   tally.Process
	client string
	slice  int64
	count  tally.Count
}

// Look takes down what is counted before an entry is applied. The caller holds the
// lock around the machine, here and at Compare.
func Look(m *fsm.Machine, e *logv1.Entry) *Reports {
	var r *Reports
	type name struct {
		from   tally.Process
		client string
		slice  int64
	}
	var seen map[name]bool
	for _, op := range e.GetOperations() {
		report := op.GetReportRetries()
		if report == nil {
			continue
		}
		if r == nil {
			r, seen = &Reports{}, make(map[name]bool)
		}
		from := tally.Process{Node: report.GetNode(), Boot: report.GetBoot()}
		for _, s := range report.GetSlices() {
			one := name{from, s.GetClient(), s.GetSlice()}
			if seen[one] {
				continue
			}
			seen[one] = true
			r.list = append(r.list, added{from, one.client, one.slice, m.Counted(from, one.client, one.slice)})
		}
	}
	return r
}

// Compare works out what the entry has added, after it was applied.
func (r *Reports) Compare(m *fsm.Machine) {
	if r == nil {
		return
	}
	for i := range r.list {
		one := &r.list[i]
		after := m.Counted(one.from, one.client, one.slice)
		one.count = after.Minus(one.count).Max(tally.Count{})
	}
}

// Applied counts what an entry added, which was made at a time.
func (b *Book) Applied(now, at time.Time, r *Reports) {
	if r == nil {
		return
	}
	for _, one := range r.list {
		if one.count != (tally.Count{}) {
			b.Reported(now, at, one.client, one.count)
		}
	}
}
