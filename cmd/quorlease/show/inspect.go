package show

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/cmd/quorlease/exit"
)

// Inspect writes one key of a limit.
func Inspect(w io.Writer, r *quorleasev1.LimitsInspectResponse) {
	fmt.Fprintf(w, "limit   %s\n", exit.Printable(r.GetLimit().GetName()))
	if r.GetKey() != "" {
		fmt.Fprintf(w, "key     %s\n", exit.Printable(r.GetKey()))
	}
	seen := "never charged, or full again"
	if r.GetSeen() {
		seen = "in use"
	}
	fmt.Fprintf(w, "bucket  %s\n", seen)
	fmt.Fprintf(w, "leases  %d open\n", r.GetOpenLeases())
	fmt.Fprintf(w, "keys    %d\n", r.GetKeys())
	keyText(w, r)
	fmt.Fprintf(w, "now     %s since the cluster began\n\n", Time(time.Duration(r.GetNow())))
	if r.GetLimit().GetUnlimited() {
		fmt.Fprintln(w, "unlimited: nothing is counted")
		reportsText(w, r)
		return
	}
	rows := make([][]string, 0, len(r.GetBuckets()))
	var classes [][]string
	for _, b := range r.GetBuckets() {
		rows = append(rows, []string{
			b.GetDimension(), Number(b.GetLevel()), Number(b.GetDebt()), Number(b.GetBurst()),
			Rate(b.GetRate()), Number(b.GetOpen()), Duration(b.GetSlack()), Number(b.GetSlackTokens()),
		})
		for _, c := range b.GetClasses() {
			classes = append(classes, []string{
				b.GetDimension(), c.GetName(), Number(c.GetLevel()), Number(c.GetDebt()),
				Number(c.GetSubBurst()), Number(c.GetEffectiveBurst()),
			})
		}
	}
	Table(w, "DIMENSION LEVEL DEBT BURST RATE OPEN SLACK SLACK_TOKENS", rows)
	// The one unnamed class of a limit without classes says nothing new.
	if len(r.GetLimit().GetClasses()) > 0 && len(classes) > 0 {
		fmt.Fprintln(w)
		Table(w, "DIMENSION CLASS LEVEL DEBT SUB_BURST EFFECTIVE_BURST", classes)
	}
	escrowText(w, r.GetEscrow())
	queuesText(w, r.GetQueues())
	reportsText(w, r)
}

// escrowText shows what nodes were given, if they were.
func escrowText(w io.Writer, list []*quorleasev1.EscrowState) {
	if len(list) == 0 {
		return
	}
	rows := make([][]string, 0, len(list))
	for _, e := range list {
		rows = append(rows, []string{
			e.GetNode(), e.GetDimension(), Dash(e.GetClass()), Number(e.GetTokens()), Number(e.GetVoid()),
		})
	}
	fmt.Fprintln(w)
	Table(w, "ESCROW_OF DIMENSION CLASS TOKENS VOID", rows)
}

// keyText says what of the key is not in its buckets.
func keyText(w io.Writer, r *quorleasev1.LimitsInspectResponse) {
	if r.GetLimit().Concurrency != nil {
		for _, b := range r.GetBuckets() {
			fmt.Fprintf(w, "slots   %d of %d in use\n", b.GetOpen(), b.GetBurst())
		}
	}
	if r.GetWindowEnds() != nil {
		at := func(t *timestamppb.Timestamp) string { return t.AsTime().UTC().Format(time.RFC3339) }
		fmt.Fprintf(w, "window  %s to %s\n", at(r.GetWindowStarts()), at(r.GetWindowEnds()))
	}
	if c := r.GetControl(); c != nil {
		fmt.Fprintf(w, "control %s\n", exit.Printable(control(c)))
	}
}

// control says what feedback has done to the key.
func control(c *quorleasev1.ControlState) string {
	var parts []string
	switch {
	case c.GetBlocked():
		parts = append(parts, "blocked until it is cleared")
	case c.GetPaused() != nil:
		parts = append(parts, "paused for "+Duration(c.GetPaused()))
	}
	if whole := c.GetWholeIn(); whole != nil && !c.GetBlocked() {
		parts = append(parts, fmt.Sprintf("%s of the rate, all of it in %s", Percent(c.GetPacePpm()/100), Duration(whole)))
	}
	if c.GetReason() != "" {
		parts = append(parts, "reason "+c.GetReason())
	}
	if c.GetClient() != "" {
		parts = append(parts, "reported by "+c.GetClient())
	}
	return strings.Join(parts, "; ")
}

// queuesText shows what waits, if anything does.
func queuesText(w io.Writer, list []*quorleasev1.QueueState) {
	if len(list) == 0 {
		return
	}
	var rows [][]string
	for _, q := range list {
		var tokens, clients []string
		for _, dimension := range slices.Sorted(maps.Keys(q.GetTokens())) {
			tokens = append(tokens, fmt.Sprintf("%s=%d", dimension, q.GetTokens()[dimension]))
		}
		for _, c := range q.GetClients() {
			clients = append(clients, fmt.Sprintf("%s:%d", Dash(c.GetClient()), c.GetWaiting()))
		}
		rows = append(rows, []string{
			q.GetClass(), Number(q.GetWaiting()), Duration(q.GetOldest()), Duration(q.GetEta()),
			strings.Join(tokens, ","), strings.Join(clients, ","),
		})
	}
	fmt.Fprintln(w)
	Table(w, "CLASS WAITING OLDEST ETA TOKENS CLIENTS", rows)
}

// reportsText shows what was reported, if anything was.
func reportsText(w io.Writer, r *quorleasev1.LimitsInspectResponse) {
	if len(r.GetReports()) == 0 {
		return
	}
	rows := make([][]string, 0, len(r.GetReports()))
	for _, one := range r.GetReports() {
		rows = append(rows, []string{
			one.GetClient(), one.GetSessionId(), one.GetDimension(), one.GetClass(), Number(one.GetTokens()),
			Time(time.Duration(one.GetAt())),
		})
	}
	fmt.Fprintln(w)
	Table(w, "REPORTED_BY SESSION DIMENSION CLASS TOKENS AT", rows)
}
