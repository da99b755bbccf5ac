package planning

import (
	"context"
	"fmt"
	"slices"

	"github.com/quorlease/quorlease/api/limitsfile"
	"github.com/quorlease/quorlease/api/limitsfile/written"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/cmd/quorlease/exit"
	"github.com/quorlease/quorlease/plan"
)

// measuredHours is how far back nodes are asked: a week.
const measuredHours = 7 * 24

// usageTop is all that an answer may have.
const usageTop = 1000

// Ask asks the nodes for what they have counted.
type Ask func(context.Context, *quorleasev1.UsageBookQueryRequest) (*quorleasev1.UsageBookQueryResponse, error)

// source checks that one flag at most says how far estimates are off.
func (o *Options) source() error {
	var given []string
	if o.wrong != "" {
		given = append(given, "--error")
	}
	if o.settled != "" {
		given = append(given, "--settled")
	}
	if o.measured {
		given = append(given, "--measured")
	}
	if len(given) > 1 {
		return exit.Usagef("%s and %s both say how far estimates are off: give one", given[0], given[1])
	}
	return nil
}

// atNodes is the error that nodes have measured, and of which dimension: of those that a
// task is charged the one that is off furthest.
func (o *Options) atNodes(ctx context.Context, ask Ask, limit string, dimensions []plan.Dimension) (*measured, error) {
	answer, err := ask(ctx, &quorleasev1.UsageBookQueryRequest{By: "limit", Hours: measuredHours, Top: usageTop})
	if err != nil {
		return nil, err
	}
	var most int64
	var worst *measured
	for _, row := range answer.GetRows() {
		e := row.GetEstimates()
		if row.GetName() != limit || e == nil || !slices.ContainsFunc(dimensions, func(d plan.Dimension) bool {
			return d.Name == row.GetDimension()
		}) {
			continue
		}
		most = max(most, e.GetTasks())
		if e.GetTasks() < plan.SettledMin || worst != nil && e.GetP99Bp() <= worst.P99 {
			continue
		}
		worst = &measured{of: " of " + row.GetDimension() + " in a week", Errors: plan.Errors{
			Tasks: e.GetTasks(), P50: e.GetP50Bp(), P90: e.GetP90Bp(), P99: e.GetP99Bp(), Most: e.GetMostBp(),
		}}
	}
	if worst == nil {
		return nil, fmt.Errorf("--measured: limit %s: at most %d tasks of a dimension were settled in a week, at least %d",
			limitsfile.Quote(limit), most, plan.SettledMin)
	}
	if worst.P99 > plan.ErrorMax {
		return nil, fmt.Errorf("--measured: limit %s: %s", limitsfile.Quote(limit), beyond(worst.P99))
	}
	return worst, nil
}

// beyond says that an error is too large for any margin.
func beyond(p99 int64) string {
	return fmt.Sprintf("one in a hundred tasks used %s more than it was charged: no margin covers 100%%",
		written.FormatShare(p99))
}
