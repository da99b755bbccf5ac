package show

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/quorlease/quorlease/api/limitsfile"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/cmd/quorlease/exit"
)

// History writes a line for each change, in the order of the answer.
func History(w io.Writer, r *quorleasev1.LimitsHistoryResponse) {
	var rows [][]string
	for _, rev := range r.GetRevisions() {
		for _, change := range rev.GetChanges() {
			verb, what := verbOf(change)
			rows = append(rows, []string{
				Number(rev.GetRevision()), rev.GetTime().AsTime().UTC().Format(time.RFC3339), rev.GetAuthor(),
				verb, what, change.GetName(),
			})
		}
	}
	Table(w, "REVISION TIME AUTHOR CHANGE KIND NAME", rows)
}

// verbOf says in one word what a change did, and to what.
func verbOf(change *quorleasev1.LimitChange) (verb, what string) {
	before, after := change.GetLimitBefore() != nil, change.GetLimitAfter() != nil
	what = "limit"
	if change.GetRetryBudgetBefore() != nil || change.GetRetryBudgetAfter() != nil {
		before, after = change.GetRetryBudgetBefore() != nil, change.GetRetryBudgetAfter() != nil
		what = "retry_budget"
	}
	switch {
	case before && after:
		return "changed", what
	case after:
		return "added", what
	default:
		return "deleted", what
	}
}

// Changes writes each change in a line, and below one that changed what
// its file looked like before and looks like after.
func Changes(w io.Writer, changes []*quorleasev1.LimitChange) {
	for _, change := range changes {
		verb, what := verbOf(change)
		fmt.Fprintf(w, "%s %s %s\n", verb, what, exit.Printable(change.GetName()))
		if verb != "changed" {
			continue
		}
		before := fileLines(change.GetLimitBefore(), change.GetRetryBudgetBefore())
		after := fileLines(change.GetLimitAfter(), change.GetRetryBudgetAfter())
		for _, line := range lineDiff(before, after) {
			fmt.Fprintln(w, "  "+exit.Printable(line))
		}
	}
}

// fileLines is the part of a limits file that describes one limit or budget.
func fileLines(l *quorleasev1.Limit, b *quorleasev1.RetryBudget) []string {
	one := &quorleasev1.LimitsApplyRequest{}
	if l != nil {
		one.Limits = append(one.Limits, l)
	}
	if b != nil {
		one.RetryBudgets = append(one.RetryBudgets, b)
	}
	return strings.Split(string(limitsfile.Format(one)), "\n")
}

// lineDiff shows what is gone with a minus and what is new with a plus, in
// order, by the longest common subsequence. What did not change is left out.
func lineDiff(before, after []string) []string {
	// common[i][j] is the length of the longest common subsequence of
	// before[i:] and after[j:]. One limit has few lines.
	common := make([][]int, len(before)+1)
	for i := range common {
		common[i] = make([]int, len(after)+1)
	}
	for i := len(before) - 1; i >= 0; i-- {
		for j := len(after) - 1; j >= 0; j-- {
			if before[i] == after[j] {
				common[i][j] = common[i+1][j+1] + 1
				continue
			}
			common[i][j] = max(common[i+1][j], common[i][j+1])
		}
	}
	var out []string
	i, j := 0, 0
	for i < len(before) || j < len(after) {
		switch {
		case i < len(before) && j < len(after) && before[i] == after[j]:
			i, j = i+1, j+1
		case i < len(before) && (j == len(after) || common[i+1][j] >= common[i][j+1]):
			out = append(out, "- "+strings.TrimSpace(before[i]))
			i++
		default:
			out = append(out, "+ "+strings.TrimSpace(after[j]))
			j++
		}
	}
	return out
}
