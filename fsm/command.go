package fsm

import (
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/refuse"
)

// applyOne is the one table: which function applies which operation. A test
// checks that it is complete.
func (m *Machine) applyOne(op *logv1.Operation) *logv1.Result {
	var result *logv1.Result
	var refused error
	switch kind := op.GetKind().(type) {
	case *logv1.Operation_Acquire:
		return m.applyAcquire(kind.Acquire)
	case *logv1.Operation_Settle:
		result, refused = m.leases.Settle(kind.Settle)
	case *logv1.Operation_Release:
		result, refused = m.leases.Release(kind.Release)
	case *logv1.Operation_Renew:
		result, refused = m.leases.Renew(kind.Renew)
	case *logv1.Operation_ApplyLimits:
		result, refused = m.applyLimits(kind.ApplyLimits)
	case *logv1.Operation_Adjust:
		result, refused = m.applyAdjust(kind.Adjust)
	case *logv1.Operation_ReportRetries:
		result, refused = m.applyReportRetries(kind.ReportRetries)
	case *logv1.Operation_ReportAdmitted:
		result, refused = m.admitted.Apply(kind.ReportAdmitted)
	case *logv1.Operation_ReportShares:
		result, refused = m.state.Shares.Apply(m.state.Now, kind.ReportShares, m.Limit)
	case *logv1.Operation_Feedback:
		result, refused = m.feedback.Apply(kind.Feedback)
	case *logv1.Operation_RollWindow:
		result, refused = m.applyRoll(kind.RollWindow)
	case *logv1.Operation_EndSession:
		result, refused = m.leases.EndSession(kind.EndSession)
	case *logv1.Operation_AskEscrow:
		result, refused = m.escrow.Ask(kind.AskEscrow)
	case *logv1.Operation_ReturnEscrow:
		result, refused = m.escrow.Return(kind.ReturnEscrow)
	case *logv1.Operation_SetNode:
		result, refused = m.applySetNode(kind.SetNode)
	case *logv1.Operation_Form:
		result, refused = m.applyForm(kind.Form)
	default:
		refused = refuse.Field("operation", "none: an operation has exactly one kind")
	}
	if refused != nil {
		return refuse.Result(refused)
	}
	return result
}
