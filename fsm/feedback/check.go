package feedback

import (
	"fmt"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/check"
	"github.com/quorlease/quorlease/fsm/lineage"
	"github.com/quorlease/quorlease/fsm/record"
	"github.com/quorlease/quorlease/fsm/refuse"
	"github.com/quorlease/quorlease/fsm/state"
)

// Bounds of an operation (G10).
const (
	maxSignals  = 64
	maxObserved = 16
)

// check looks at all signals, and finds their limits: nil for one that there is
// not. Where there is no room to remember them nothing is done.
func (b *Book) check(op *logv1.Feedback) ([]*state.Limit, error) {
	if err := refuse.Text("owner", op.GetOwner(), 0, check.MaxText); err != nil {
		return nil, err
	}
	if err := refuse.Text("client", op.GetClient(), 0, check.MaxText); err != nil {
		return nil, err
	}
	if n := len(op.GetSignals()); n < 1 || n > maxSignals {
		return nil, refuse.Field("feedback", "%d: must be from 1 to %d", n, maxSignals)
	}
	limits, fresh := make([]*state.Limit, len(op.GetSignals())), 0
	for i, s := range op.GetSignals() {
		if err := checkSignal(s); err != nil {
			return nil, refuse.Wrong(refuse.At("feedback", i, ""), err)
		}
		lim := b.state.FindLimit(s.GetLimit())
		if lim == nil || !lim.Live() {
			continue
		}
		if wrong := check.WrongKey(lim.Limit.GetKeyed(), s.GetKey()); wrong != "" {
			return nil, refuse.Field(refuse.At("feedback", i, "key"), "%s", wrong)
		}
		if lim.Limit.GetUnlimited() {
			// It grants always: there is nothing that could be closed.
			continue
		}
		limits[i] = lim
		if s.GetKind() != logv1.Signal_KIND_OBSERVED && b.state.ControlOf(b.state.FindKey(lim.ID, s.GetKey())) == nil {
			fresh++
		}
	}
	if n := b.state.Controlled(); fresh > 0 && n+fresh > state.MaxControls {
		return nil, refuse.For(logv1.Refusal_CAUSE_REPORT_LIMIT, "feedback",
			"%d more: %d keys are under control, at most %d", fresh, n, state.MaxControls)
	}
	return limits, nil
}

// checkSignal looks at what can be seen without the state. The error is a
// *check.FieldError.
func checkSignal(s *logv1.Signal) error {
	switch wait := time.Duration(s.GetWait()); {
	case !lineage.IsName(s.GetLimit()):
		return bad("limit", "%q: is no name of a limit", check.Clip(s.GetLimit()))
	case s.GetKind() < logv1.Signal_KIND_THROTTLED || s.GetKind() > logv1.Signal_KIND_OBSERVED:
		return bad("kind", "%d: must be from %d to %d", s.GetKind(),
			logv1.Signal_KIND_THROTTLED, logv1.Signal_KIND_OBSERVED)
	case wait < 0 || wait > record.MaxPause:
		return bad("wait", "%v: must be from 0s to %v", wait, record.MaxPause)
	case s.GetKind() == logv1.Signal_KIND_OBSERVED && len(s.GetObserved()) == 0:
		return bad("remaining", "none: there is nothing else in it")
	case len(s.GetObserved()) > maxObserved:
		return bad("remaining", "%d: must be at most %d", len(s.GetObserved()), maxObserved)
	}
	seen := make(map[string]bool, len(s.GetObserved()))
	for _, o := range s.GetObserved() {
		switch {
		case !lineage.IsWord(o.GetDimension()):
			return bad("remaining", "%q: is no name of a dimension", check.Clip(o.GetDimension()))
		case seen[o.GetDimension()]:
			return bad("remaining", "%q: is there twice", o.GetDimension())
		case o.GetRemaining() < 0 || o.GetRemaining() > bucket.MaxTokens:
			return bad("remaining", "%d of %s: must be from 0 to %d",
				o.GetRemaining(), o.GetDimension(), int64(bucket.MaxTokens))
		}
		seen[o.GetDimension()] = true
	}
	if err := check.Text("key", s.GetKey(), 0, check.MaxKey); err != nil {
		return err
	}
	return check.Text("reason", s.GetReason(), 0, check.MaxText)
}

func bad(field, format string, values ...any) error {
	return &check.FieldError{Field: field, Problem: fmt.Sprintf(format, values...)}
}
