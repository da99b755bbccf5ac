package judge

import (
	"slices"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
)

// reports checks that what clients admitted by themselves is booked once: never
// more than was admitted, and in the end all of it.
type reports struct {
	judge  *Judge
	counts map[report]*count
	order  []report
}

type report struct {
	who string
	of  place
}

type count struct{ admitted, booked int64 }

func (r *reports) count(id report) *count {
	c := r.counts[id]
	if c == nil {
		c = &count{}
		r.counts[id] = c
		r.order = append(r.order, id)
	}
	return c
}

func (r *reports) admitted(id report, n int64) { r.count(id).admitted += n }

func (r *reports) booked(op *logv1.ReportAdmitted, result *logv1.AdmittedResult) {
	for i, b := range result.GetBookings() {
		one := op.GetCounts()[i]
		id := report{op.GetClient(), place{one.GetLimit(), one.GetKey(), one.GetDimension()}}
		c := r.count(id)
		c.booked += b.GetTokens()
		if c.booked > c.admitted {
			r.judge.Complain("reports", "%s admitted %d of %v and %d are booked", id.who, c.admitted, id.of, c.booked)
		}
	}
}

// Admitted notes that a client admitted something by itself of a limit that is shared.
func (j *Judge) Admitted(who string, c *logv1.Charge, n int64) {
	j.reports.admitted(report{who, place{c.GetLimit(), c.GetKey(), c.GetDimension()}}, n)
}

// Vanished notes that a client has gone, with what it has not reported.
func (j *Judge) Vanished(who string) {
	j.reports.order = slices.DeleteFunc(j.reports.order, func(id report) bool { return id.who == who })
}

// Reported checks, at the end of a run without faults, that nothing is missing.
func (j *Judge) Reported() {
	for _, id := range j.reports.order {
		if c := j.reports.counts[id]; c.booked != c.admitted {
			j.Complain("reports", "%s admitted %d of %v and %d are booked in the end", id.who, c.admitted, id.of, c.booked)
		}
	}
}
