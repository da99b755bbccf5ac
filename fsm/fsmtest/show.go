package fsmtest

import (
	"fmt"
	"strings"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/effect"
)

// show makes results readable, a line each.
func show(results []*logv1.Result) []string {
	lines := make([]string, len(results))
	for i, r := range results {
		lines[i] = showResult(r)
	}
	return lines
}

func showResult(r *logv1.Result) string {
	switch kind := r.GetKind().(type) {
	case *logv1.Result_Acquire:
		return showAcquire(kind.Acquire)
	case *logv1.Result_Lease:
		return showLease(kind.Lease)
	case *logv1.Result_Limits:
		return showLimits(kind.Limits)
	case *logv1.Result_Adjust:
		return fmt.Sprintf("adjusted from %d to %d", kind.Adjust.GetBefore().GetTokens(), kind.Adjust.GetAfter().GetTokens())
	case *logv1.Result_Admitted:
		return showBookings(kind.Admitted.GetBookings())
	case *logv1.Result_Feedback:
		return showControlled(kind.Feedback.GetSignals())
	case *logv1.Result_Escrow:
		return showEscrow(kind.Escrow)
	case *logv1.Result_Done:
		return "done"
	case *logv1.Result_Refusal:
		cause := strings.TrimPrefix(kind.Refusal.GetCause().String(), "CAUSE_")
		return fmt.Sprintf("refused %s %s", cause, (&fsm.Refused{Refusal: kind.Refusal}).Error())
	}
	return "nothing"
}

// place is LIMIT[/KEY]:DIMENSION.
func place(limit, key, dimension string) string {
	if key != "" {
		limit += "/" + strings.TrimRight(key, "\x00")
	}
	if dimension == "" {
		return limit
	}
	return limit + ":" + dimension
}

func showAcquire(a *logv1.AcquireResult) string {
	var words []string
	if a.GetGranted() {
		words = append(words, "granted")
		if a.GetRepeated() {
			words = append(words, "before,", strings.TrimPrefix(a.GetState().String(), "LEASE_STATE_"))
		}
		if a.GetTracked() {
			words = append(words, "for", time.Duration(a.GetTtl()).String())
		}
		if n := len(a.GetPaid()); n > 0 {
			words = append(words, "paid from escrow", fmt.Sprint(a.GetPaid()))
		}
	} else {
		words = append(words, "denied")
	}
	for i, d := range a.GetDenials() {
		if i > 0 {
			words = append(words, "and")
		}
		words = append(words, strings.TrimPrefix(d.GetReason().String(), "REASON_"))
		if d.GetLimit() != "" {
			words = append(words, place(d.GetLimit(), d.GetKey(), d.GetDimension()))
		}
		words = append(words, showWait(d))
	}
	for _, w := range a.GetWarnings() {
		words = append(words, "warning", strings.TrimPrefix(w.GetReason().String(), "REASON_"),
			place(w.GetLimit(), w.GetKey(), w.GetDimension()), showWait(w))
	}
	for _, r := range a.GetRemaining() {
		words = append(words, fmt.Sprintf("left %s=%d", place(r.GetLimit(), r.GetKey(), r.GetDimension()), r.GetTokens()))
	}
	return strings.Join(words, " ")
}

func showWait(d *logv1.Denial) string {
	if d.GetRetryAfter() == 0 {
		return "never"
	}
	return "wait " + time.Duration(d.GetRetryAfter()).String()
}

func showLease(r *logv1.LeaseResult) string {
	words := []string{strings.TrimPrefix(r.GetState().String(), "LEASE_STATE_")}
	if r.GetRepeated() {
		words = append(words, "before")
	}
	if r.GetTtl() > 0 {
		words = append(words, "for", time.Duration(r.GetTtl()).String())
	}
	for _, s := range r.GetSettlements() {
		words = append(words, fmt.Sprintf("%s used %d of %d", place(s.GetLimit(), s.GetKey(), s.GetDimension()),
			s.GetUsed(), s.GetAmount()))
		for _, part := range []struct {
			name   string
			tokens int64
		}{{"refunded", s.GetRefunded()}, {"excess", s.GetExcess()}, {"written off", s.GetWrittenOff()}} {
			if part.tokens != 0 {
				words = append(words, fmt.Sprintf("%s %d", part.name, part.tokens))
			}
		}
	}
	return strings.Join(words, " ")
}

func showBookings(bookings []*logv1.Booking) string {
	words := []string{"booked"}
	for i, b := range bookings {
		if i > 0 {
			words = append(words, "and")
		}
		switch {
		case b.GetGone():
			words = append(words, "gone")
		case b.GetWrittenOff() > 0:
			words = append(words, fmt.Sprintf("%d, debt %d, written off %d", b.GetTokens(), b.GetDebt(), b.GetWrittenOff()))
		case b.GetDebt() > 0:
			words = append(words, fmt.Sprintf("%d, debt %d", b.GetTokens(), b.GetDebt()))
		default:
			words = append(words, fmt.Sprint(b.GetTokens()))
		}
	}
	return strings.Join(words, " ")
}

func showLimits(r *logv1.LimitsResult) string {
	return strings.TrimSpace(fmt.Sprintf("revision %d %s", r.GetRevision(), showChanges(r.GetChanges())))
}

func showChanges(changes []*logv1.LimitChange) string {
	var words []string
	for _, c := range changes {
		before := c.GetLimitBefore() != nil || c.GetBudgetBefore() != nil
		after := c.GetLimitAfter() != nil || c.GetBudgetAfter() != nil
		sign := "?"
		switch {
		case before && after:
			sign = "~"
		case after:
			sign = "+"
		case before:
			sign = "-"
		}
		words = append(words, sign+c.GetName())
	}
	return strings.Join(words, " ")
}

func showEffect(e effect.Effect) string {
	words := []string{"effect", e.Kind.String()}
	if e.Limit != "" {
		words = append(words, place(e.Limit, e.Key, e.Dimension))
	}
	for _, text := range []string{e.Client, e.Node.GetRaftId(), e.Value, e.Text} {
		if text != "" {
			words = append(words, text)
		}
	}
	return strings.Join(words, " ")
}

func showInspection(in *fsm.Inspection) []string {
	head := "as never seen"
	if in.Seen {
		head = "seen"
	}
	lines := []string{fmt.Sprintf("%s, open leases %d, keys %d", head, in.OpenLeases, in.Keys)}
	for _, b := range in.Buckets {
		line := fmt.Sprintf("%s level %d of %d, debt %d, open %d, rate %d/%v, slack %v or %d",
			b.Dimension, b.Level, b.Burst, b.Debt, b.Open, b.Amount, b.Interval, b.Slack, b.SlackTokens)
		for _, c := range b.Classes {
			if c.Name != "" {
				line += fmt.Sprintf("; %s %d of %d, debt %d, effective burst %d",
					c.Name, c.Level, c.SubBurst, c.Debt, c.EffectiveBurst)
			}
		}
		lines = append(lines, line)
	}
	lines = append(lines, showControl(in)...)
	lines = append(lines, showHeld(in)...)
	for _, r := range in.Reports {
		line := fmt.Sprintf("session %s of %q reported %d %s at %v", strings.TrimRight(string(r.ID.Session[:]), "\x00"),
			r.Client, r.Tokens, r.ID.Dimension, time.Duration(r.At))
		if r.ID.Class != "" {
			line += " of class " + r.ID.Class
		}
		lines = append(lines, line)
	}
	return lines
}
