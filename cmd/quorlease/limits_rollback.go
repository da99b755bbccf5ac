package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/cmd/quorlease/exit"
)

func newLimitsRollback(a *app) *cobra.Command {
	var dryRun, forceEmpty bool
	cmd := &cobra.Command{
		Use:   "rollback REVISION",
		Short: "Make the limits what they were at a revision",
		Long: `Make the limits and retry budgets what they were at a revision, as one new
change. Levels are not turned back: what was spent stays spent. It is refused
when somebody changes the limits at the same time, or when the history does not
reach back far enough.

Revision 0 is before the first limit. Going back to it, or to another revision
without limits and retry budgets, deletes all there are: that takes
--force-empty.`,
		Example: `  quorlease limits history
  quorlease limits rollback 6 --dry-run`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			revision, err := strconv.ParseUint(args[0], 10, 64)
			if err != nil {
				return exit.Usagef("revision %q is not a whole number", args[0])
			}
			if revision == 0 && !forceEmpty {
				return errEmpties(0)
			}
			answer, err := a.rollback(c.Context(), rollback{revision, dryRun, forceEmpty})
			if err != nil {
				return err
			}
			return a.print(answer, func(w io.Writer) { applyText(w, answer, dryRun) })
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "check, and show what would change")
	cmd.Flags().BoolVar(&forceEmpty, "force-empty", false, "go back even to where there was no limit at all")
	return cmd
}

// rollback says where to go back to.
type rollback struct {
	revision           uint64
	dryRun, forceEmpty bool
}

// errEmpties refuses to delete everything by a slip.
func errEmpties(revision uint64) error {
	what := "has no limits and no retry budgets"
	if revision == 0 {
		what = "is before the first limit"
	}
	return exit.Usagef("revision %d %s: only with --force-empty, which deletes all there are", revision, what)
}

func (a *app) rollback(ctx context.Context, to rollback) (*quorleasev1.LimitsApplyResponse, error) {
	now, err := a.listLimits(ctx, &quorleasev1.LimitsListRequest{})
	if err != nil {
		return nil, err
	}
	history, err := a.history(ctx, &quorleasev1.LimitsHistoryRequest{})
	if err != nil {
		return nil, err
	}
	request, err := rewind(now, history.GetRevisions(), to.revision)
	if err != nil {
		return nil, err
	}
	if len(request.GetLimits())+len(request.GetRetryBudgets()) == 0 && !to.forceEmpty {
		return nil, errEmpties(to.revision)
	}
	request.DryRun = to.dryRun
	return a.applyLimits(ctx, request)
}

// rewind undoes, newest first, every change after a revision. What it returns
// names everything there was then, so that pruning deletes the rest, and holds
// on to the revision it started from.
func rewind(
	now *quorleasev1.LimitsListResponse, revisions []*quorleasev1.Revision, to uint64,
) (*quorleasev1.LimitsApplyRequest, error) {
	if to > now.GetRevision() {
		return nil, fmt.Errorf("revision %d does not exist yet: the limits are at %d", to, now.GetRevision())
	}
	limits, budgets := map[string]*quorleasev1.Limit{}, map[string]*quorleasev1.RetryBudget{}
	for _, l := range now.GetLimits() {
		limits[l.GetName()] = l
	}
	for _, b := range now.GetRetryBudgets() {
		budgets[b.GetName()] = b
	}
	next := now.GetRevision()
	for _, rev := range revisions {
		// What came after the list was read is refused by the revision anyway.
		if rev.GetRevision() > now.GetRevision() || rev.GetRevision() <= to {
			continue
		}
		if rev.GetRevision() != next {
			break
		}
		next--
		for _, change := range rev.GetChanges() {
			if isNameOnly(change) {
				return nil, fmt.Errorf("revision %d is out of reach: of revision %d the history has only the names",
					to, rev.GetRevision())
			}
			undo(limits, change.GetName(), change.GetLimitBefore(), change.GetLimitAfter())
			undo(budgets, change.GetName(), change.GetRetryBudgetBefore(), change.GetRetryBudgetAfter())
		}
	}
	if next != to {
		return nil, fmt.Errorf("revision %d is out of reach: the history goes back to %d only", to, next)
	}
	revision := now.GetRevision()
	request := &quorleasev1.LimitsApplyRequest{Prune: true, ExpectedRevision: &revision}
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		request.Limits = append(request.Limits, limits[name])
	}
	for _, name := range slices.Sorted(maps.Keys(budgets)) {
		request.RetryBudgets = append(request.RetryBudgets, budgets[name])
	}
	return request, nil
}

// isNameOnly says that the change was too large to be kept.
func isNameOnly(c *quorleasev1.LimitChange) bool {
	return c.GetLimitBefore() == nil && c.GetLimitAfter() == nil &&
		c.GetRetryBudgetBefore() == nil && c.GetRetryBudgetAfter() == nil
}

// undo puts back what was there before a change. A change of the other kind
// has neither a before nor an after here.
func undo[T quorleasev1.Limit | quorleasev1.RetryBudget](all map[string]*T, name string, before, after *T) {
	switch {
	case before != nil:
		all[name] = before
	case after != nil:
		delete(all, name)
	}
}
