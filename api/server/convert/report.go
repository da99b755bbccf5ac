package convert

import (
	"encoding/hex"

	"github.com/quorlease/quorlease/api/limitsfile"
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// admittedMax bounds the counts of one report.
const admittedMax = 64

// Report checks all of a report by owner, and makes the operation of what was
// admitted: nil where nothing was. For what providers said see Signal.
func Report(r *quorleasev1.ReportRequest, owner string) (*logv1.Operation, error) {
	c := &checker{}
	op := &logv1.ReportAdmitted{Owner: owner, Client: r.GetClient()}
	c.problem("client", limitsfile.ClientProblem(r.GetClient()))
	if len(r.GetAdmitted()) > 0 || r.GetSessionId() != "" {
		op.Session = c.hex("session_id", r.GetSessionId())
	}
	if len(r.GetAdmitted())+len(r.GetFeedback()) == 0 && r.GetAttempts() == nil {
		c.fail("admitted", "missing: 1 to %d, or feedback, or attempts", admittedMax)
	}
	c.admitted(r.GetAdmitted())
	c.feedback(r.GetFeedback())
	c.attempts(r.GetAttempts())
	if err := c.err(); err != nil || len(r.GetAdmitted()) == 0 {
		return nil, err
	}
	for _, a := range r.GetAdmitted() {
		op.Counts = append(op.Counts, &logv1.AdmittedCount{
			Limit: a.GetLimit(), Key: a.GetKey(), Dimension: a.GetDimension(), Class: a.GetClass(), Tokens: a.GetTokens(),
		})
	}
	return &logv1.Operation{Kind: &logv1.Operation_ReportAdmitted{ReportAdmitted: op}}, nil
}

func (c *checker) admitted(list []*quorleasev1.Admitted) {
	if n := len(list); n > admittedMax {
		c.fail("admitted", "%d entries, more than %d", n, admittedMax)
		return
	}
	type name struct{ limit, key, dimension, class string }
	seen := make(map[name]int, len(list))
	for i, a := range list {
		c.problem(at("admitted", i, "limit"), limitsfile.NameProblem(a.GetLimit()))
		c.problem(at("admitted", i, "key"), limitsfile.KeyProblem(a.GetKey()))
		c.problem(at("admitted", i, "dimension"), limitsfile.DimensionProblem(a.GetDimension()))
		if a.GetClass() != "" {
			c.problem(at("admitted", i, "class"), limitsfile.ClassProblem(a.GetClass()))
		}
		if n := a.GetTokens(); n < 1 || n > bucket.MaxTokens {
			c.fail(at("admitted", i, "tokens"), "%d is out of range 1..%d", n, int64(bucket.MaxTokens))
		}
		this := name{a.GetLimit(), a.GetKey(), a.GetDimension(), a.GetClass()}
		if first, twice := seen[this]; twice {
			c.fail(at("admitted", i, ""), "the same limit, key, dimension and class as admitted[%d]", first)
			continue
		}
		seen[this] = i
	}
}

// ReportAnswer answers a report.
func ReportAnswer(r *logv1.AdmittedResult) *quorleasev1.ReportResponse {
	answer := &quorleasev1.ReportResponse{}
	known, fresh := false, false
	for _, b := range r.GetBookings() {
		known = known || !b.GetGone()
		fresh = fresh || b.GetTokens() > 0
		answer.Booked = append(answer.Booked, &quorleasev1.Booked{
			Tokens: b.GetTokens(), Debt: b.GetDebt(), WrittenOff: b.GetWrittenOff(), Gone: b.GetGone(),
		})
	}
	answer.RepeatedRequest = known && !fresh
	return answer
}

func reportStates(list []*fsm.Report) []*quorleasev1.ReportState {
	var out []*quorleasev1.ReportState
	for _, r := range list {
		out = append(out, &quorleasev1.ReportState{
			Client: r.Client, SessionId: hex.EncodeToString(r.ID.Session[:]),
			Dimension: r.ID.Dimension, Class: r.ID.Class, Tokens: r.Tokens, At: int64(r.At),
		})
	}
	return out
}
