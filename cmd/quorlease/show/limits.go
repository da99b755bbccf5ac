package show

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/quorlease/quorlease/api/limitsfile"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

// Limits writes limits and retry budgets, a line for each dimension.
func Limits(w io.Writer, r *quorleasev1.LimitsListResponse) {
	fmt.Fprintf(w, "revision %d\n", r.GetRevision())
	var rows [][]string
	for _, l := range r.GetLimits() {
		rows = append(rows, limitRows(l)...)
	}
	if len(rows) > 0 {
		fmt.Fprintln(w)
		Table(w, "LIMIT MATCH PER MODE DIMENSION RATE TARGET BURST MAX_DEBT MAX_OPEN LEASE CLASSES ON_QUORUM_LOSS", rows)
	}
	rows = nil
	for _, b := range r.GetRetryBudgets() {
		rows = append(rows, []string{
			b.GetName(), b.GetClient(), Number(b.GetMaxRetries()), Percent(b.GetMaxFractionBp()),
			Duration(b.GetWindow()), Number(b.GetMinRequests()), Duration(b.GetRetryAfter()),
			scopeOf(b), modeOf(b),
		})
	}
	if len(rows) > 0 {
		fmt.Fprintln(w)
		Table(w, "RETRY_BUDGET CLIENT MAX_RETRIES MAX_FRACTION WINDOW MIN_REQUESTS RETRY_AFTER SCOPE MODE", rows)
	}
}

// limitRows is one line a dimension.
func limitRows(l *quorleasev1.Limit) [][]string {
	// rule is a line: dimension, rate, target, burst, max_debt, max_open and classes.
	rule := func(cells ...string) []string {
		return slices.Concat(
			[]string{l.GetName(), matchOf(l), strings.Join(l.GetPer(), ","), modeOf(l)},
			cells[:6], []string{Duration(l.GetLease()), cells[6], lossMode(l)})
	}
	switch {
	case l.GetUnlimited():
		return [][]string{rule("", "unlimited", "", "", "", "", "")}
	case l.Concurrency != nil:
		return [][]string{rule("slots", "concurrency", "", Number(l.GetConcurrency()), "", "", "")}
	case l.GetQuota() != nil:
		var rows [][]string
		q := l.GetQuota()
		for _, dimension := range slices.Sorted(maps.Keys(q.GetAmounts())) {
			period := "quota/" + strings.ToLower(q.GetPeriod().String())
			rows = append(rows, rule(dimension, period, "", Number(q.GetAmounts()[dimension]), "", "", ""))
		}
		return rows
	}
	classes := make([]string, 0, len(l.GetClasses()))
	for _, c := range l.GetClasses() {
		classes = append(classes, c.GetName()+":"+Percent(c.GetShareBp()))
	}
	rows := make([][]string, 0, len(l.GetDimensions()))
	for _, d := range l.GetDimensions() {
		rows = append(rows, rule(d.GetName(), Rate(d.GetRate()), Percent(l.GetTargetBp()), Number(d.GetBurst()),
			Number(d.GetMaxDebt()), Number(d.GetMaxOpen()), strings.Join(classes, ",")))
	}
	return rows
}

// matchOf is which attributes must fit.
func matchOf(l *quorleasev1.Limit) string {
	var parts []string
	for _, attribute := range slices.Sorted(maps.Keys(l.GetMatch())) {
		parts = append(parts, attribute+"="+l.GetMatch()[attribute])
	}
	return strings.Join(parts, ",")
}

// scopeOf is what a client over its budget loses.
func scopeOf(b *quorleasev1.RetryBudget) string {
	if b.GetScope() == quorleasev1.Scope_SCOPE_UNSPECIFIED {
		return ""
	}
	return strings.ToLower(b.GetScope().String())
}

// modeOf is whether a limit or retry budget refuses.
func modeOf(of interface{ GetMode() quorleasev1.Mode }) string {
	if of.GetMode() == quorleasev1.Mode_MODE_UNSPECIFIED {
		return ""
	}
	return strings.ToLower(of.GetMode().String())
}

// lossMode is what clients do while nobody answers, and at which share.
func lossMode(l *quorleasev1.Limit) string {
	mode := limitsfile.ModeName(l.GetOnQuorumLoss())
	if l.FallbackShareBp != nil {
		mode += ":" + Percent(l.GetFallbackShareBp())
	}
	return mode
}
