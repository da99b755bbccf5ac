package planning

import (
	"fmt"
	"io"
	"math/big"
	"strings"
	"time"

	"github.com/quorlease/quorlease/api/limitsfile/written"
	"github.com/quorlease/quorlease/cmd/quorlease/exit"
	"github.com/quorlease/quorlease/cmd/quorlease/show"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/plan"
)

// afterShown is for how many seconds a line of text says what is held.
const afterShown = 12

// text writes the plan for people.
func (r *result) text(w io.Writer) {
	a := r.answer
	binding := a.Parts[a.Binding]
	fmt.Fprintf(w, "limit     %s at %s\n", r.limit.GetName(), exit.Printable(r.place))
	fmt.Fprintf(w, "binding   %s, %s\n", binding.Name, perMinute(binding.Tasks))
	fmt.Fprintf(w, "live      %s\n", perMinute(a.Live))
	fmt.Fprintf(w, "headroom  %s\n", perMinute(a.Headroom))
	if r.question.Clients > 0 {
		fmt.Fprintf(w, "jitter    %s for %s, if chance alone had to spread one attempt each\n", long(a.Jitter),
			show.Count(int(r.question.Clients), "client"))
	}
	fmt.Fprintf(w, "margin    %s: %s\n\n", written.FormatShare(a.Margin), r.why())

	var rows [][]string
	for _, p := range a.Parts {
		rows = append(rows, []string{
			p.Name, written.FormatRate(p.Rate.Amount, p.Rate.Interval), show.Number(p.Cost),
			perMinute(p.Tasks), perMinute(p.AtTarget), part(p.Live), part(p.Worst),
		})
	}
	show.Table(w, "DIMENSION LIMIT COST TASKS AT_TARGET LIVE WORST_MINUTE", rows)
	fmt.Fprintln(w)
	r.paces(w)
	r.spreads(w)
	r.whatIf(w)
}

// why says where the suggested margin comes from.
func (r *result) why() string {
	if e := r.errors; e != nil {
		return fmt.Sprintf("of %s%s, 50 of 100 used at most %s more than they were charged, 90 %s, 99 %s, all %s",
			show.Count(int(e.Tasks), "task"), e.of, written.FormatShare(e.P50), written.FormatShare(e.P90),
			written.FormatShare(e.P99), written.FormatShare(e.Most))
	}
	if r.answer.Measured {
		return "the measured error of the estimates, 99th percentile"
	}
	return "nothing has measured the error of the estimates; with a measured one, --error, it may be less"
}

func (r *result) paces(w io.Writer) {
	rows := make([][]string, 0, len(r.answer.Paces))
	for _, p := range r.answer.Paces {
		eta := ""
		if r.question.Tasks > 0 {
			eta = long(p.ETA)
		}
		rows = append(rows, []string{
			written.FormatShare(p.Target), strings.Join(kinds(p), ","), perMinute(p.Tasks), perMinute(p.Backfill), eta,
		})
	}
	show.Table(w, "TARGET OF PACE BACKFILL ETA", rows)
}

// kinds says which targets a pace is of.
func kinds(p plan.Pace) (list []string) {
	if p.File {
		list = append(list, "file")
	}
	if p.Suggested {
		list = append(list, "suggested")
	}
	if p.Target == bucket.Whole {
		list = append(list, "no-margin")
	}
	return list
}

func (r *result) spreads(w io.Writer) {
	if len(r.answer.Spreads) == 0 {
		return
	}
	fmt.Fprintln(w)
	var rows [][]string
	for _, s := range r.answer.Spreads {
		rows = append(rows, []string{
			long(s.Window), decimals(s.PerSecond, 2) + "/s", perMinute(minute(s.PerSecond)), show.YesNo(s.Fits),
		})
	}
	show.Table(w, "WINDOW PER_SECOND PER_MINUTE FITS", rows)
}

func (r *result) whatIf(w io.Writer) {
	if len(r.answer.WhatIf) == 0 {
		return
	}
	fmt.Fprintf(w, "\nwhat if %s come at once, at a full bucket\n\n", show.Count(int(r.question.Arrivals), "task"))
	var rows [][]string
	for _, c := range r.answer.WhatIf {
		after := make([]string, 0, len(c.After))
		for _, n := range c.After {
			after = append(after, show.Number(n))
		}
		if len(after) > afterShown {
			after = append(after[:afterShown], "…")
		}
		rows = append(rows, []string{
			show.Number(c.Capacity), perMinute(c.Rate), of(c), show.Number(c.Admitted), show.Number(c.Held),
			long(c.Empty), strings.Join(after, ","),
		})
	}
	show.Table(w, "CAPACITY RATE OF ADMITTED HELD NONE_WAITS_AFTER HELD_AFTER_1_S_2_S_…", rows)
}

// of says where a row's bucket is from.
func of(c plan.Cell) string {
	switch {
	case c.File:
		return "file"
	case c.Whole:
		return "no-margin"
	}
	return ""
}

// minute makes a rate a second one a minute.
func minute(perSecond *big.Rat) *big.Rat {
	return new(big.Rat).Mul(perSecond, big.NewRat(int64(time.Minute/time.Second), 1))
}
