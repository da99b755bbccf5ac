// Package usage is the service UsageBook.
package usage

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/quorlease/quorlease/api/limitsfile"
	"github.com/quorlease/quorlease/api/limitsfile/written"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server/convert"
	"github.com/quorlease/quorlease/cluster/usage"
	"github.com/quorlease/quorlease/plan"
)

// hoursDefault is how far back a query looks that does not say.
const hoursDefault = 24

// Asker asks every node what it has counted.
type Asker interface {
	Usage(ctx context.Context, q usage.Query) usage.Answer
}

// Service is the service UsageBook. It is safe for concurrent use.
type Service struct {
	quorleasev1.UnimplementedUsageBookServer
	node Asker
}

// New is the service of a node.
func New(node Asker) *Service { return &Service{node: node} }

// Query says who was granted and denied how much.
func (s *Service) Query(
	ctx context.Context, r *quorleasev1.UsageBookQueryRequest,
) (*quorleasev1.UsageBookQueryResponse, error) {
	q, err := query(time.Now(), r)
	if err != nil {
		return nil, err
	}
	found := s.node.Usage(ctx, q)
	if q.End != 0 && !found.From.Before(found.To) {
		return nil, convert.Wrong("to", fmt.Sprintf("%s: usage is kept from %s on", limitsfile.Quote(r.GetTo()),
			found.From.UTC().Format(time.RFC3339)))
	}
	answer := &quorleasev1.UsageBookQueryResponse{
		From: timestamppb.New(found.From), To: timestamppb.New(found.To), Nodes: found.Nodes, Missing: found.Missing,
	}
	for _, row := range found.Rows {
		answer.Rows = append(answer.Rows, &quorleasev1.UsageRow{
			Name: row.Name, Limit: row.Limit, Dimension: row.Dimension, Other: row.Other,
			Grants: row.Grants, Denials: row.Denials, Granted: row.Granted, Denied: row.Denied,
			Estimates: estimates(row.Estimates), Returned: row.Returned, Extra: row.Extra,
		})
	}
	return answer, nil
}

// estimates are the figures of a tally, nil where there is none.
func estimates(t *plan.Tally) *quorleasev1.UsageEstimates {
	if t == nil {
		return nil
	}
	e := t.Errors()
	return &quorleasev1.UsageEstimates{Tasks: e.Tasks, P50Bp: e.P50, P90Bp: e.P90, P99Bp: e.P99, MostBp: e.Most}
}

// period puts from and to into a query, where they are said.
func period(now time.Time, r *quorleasev1.UsageBookQueryRequest, q *usage.Query) error {
	switch {
	case r.GetFrom() == "" && r.GetTo() == "":
		return nil
	case r.GetFrom() == "":
		return convert.Wrong("to", limitsfile.Quote(r.GetTo())+": only with from")
	case q.Hours != 0:
		return convert.Wrong("hours", fmt.Sprintf("%d: not with from", q.Hours))
	}
	from, problem := written.ParseHour(r.GetFrom())
	if problem != "" {
		return convert.Wrong("from", problem)
	}
	end := usage.HourOf(now) + 1
	if r.GetTo() != "" {
		to, problem := written.ParseHour(r.GetTo())
		if problem != "" {
			return convert.Wrong("to", problem)
		}
		if !to.After(from) {
			return convert.Wrong("to", limitsfile.Quote(r.GetTo())+": is not after from")
		}
		end = min(end, usage.HourOf(to))
		// 0 is now.
		q.End = max(1, usage.HourOf(to))
	}
	hours := end - usage.HourOf(from)
	switch {
	case hours < 1:
		return convert.Wrong("from", limitsfile.Quote(r.GetFrom())+": has not come yet")
	case hours > usage.HoursMost:
		return convert.Wrong("from", fmt.Sprintf("%s: %d hours are more than %d", limitsfile.Quote(r.GetFrom()), hours,
			usage.HoursMost))
	}
	q.Hours = int(hours)
	return nil
}

// query checks what is asked.
func query(now time.Time, r *quorleasev1.UsageBookQueryRequest) (usage.Query, error) {
	q := usage.Query{By: r.GetBy(), Hours: int(r.GetHours()), Top: int(r.GetTop()), Limit: r.GetLimit()}
	switch q.By {
	case usage.ByClient, usage.ByKey, usage.ByLimit, usage.ByTeam:
	default:
		return q, convert.Wrong("by", limitsfile.Quote(q.By)+": must be client, key, limit or team")
	}
	if q.Limit != "" {
		if problem := limitsfile.NameProblem(q.Limit); problem != "" {
			return q, convert.Wrong("limit", problem)
		}
	}
	if q.Hours > usage.HoursMost {
		return q, convert.Wrong("hours", fmt.Sprintf("%d is out of range 0..%d", q.Hours, usage.HoursMost))
	}
	if q.Top > usage.TopMost {
		return q, convert.Wrong("top", fmt.Sprintf("%d is out of range 0..%d", q.Top, usage.TopMost))
	}
	if err := period(now, r, &q); err != nil {
		return q, err
	}
	if q.Hours == 0 {
		q.Hours = hoursDefault
	}
	if q.Top == 0 {
		q.Top = usage.TopMost
	}
	return q, nil
}
