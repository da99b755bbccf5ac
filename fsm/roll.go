package fsm

import (
	"strconv"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/check"
	"github.com/quorlease/quorlease/fsm/effect"
	"github.com/quorlease/quorlease/fsm/refuse"
)

// applyRoll begins the next window of a quota. The leader says where it ends, since
// zone databases differ; whether it has begun is decided by the wall clock of the
// entry, which moves forward only (T6).
func (m *Machine) applyRoll(op *logv1.RollWindow) (*logv1.Result, error) {
	lim := m.state.FindLimit(op.GetLimit())
	switch {
	case lim == nil || !lim.Live():
		return nil, refuse.For(logv1.Refusal_CAUSE_LIMIT_NOT_FOUND, "limit", "%q: there is no such limit",
			check.Clip(op.GetLimit()))
	case op.GetStarts() > m.state.Wall || op.GetEnds() <= m.state.Wall:
		return nil, refuse.Field("starts", "%d: the window until %d is not the one of now, %d",
			op.GetStarts(), op.GetEnds(), m.state.Wall)
	}
	next, err := lim.Roll(op.GetStarts(), op.GetEnds(), m.state.Now)
	if err != nil {
		return nil, refuse.Wrong("", err)
	}
	m.state.SetLineage(lim, next)
	m.effects.Add(effect.Effect{
		Kind: effect.WindowRolled, Limit: lim.Name, Value: strconv.FormatInt(op.GetEnds(), 10),
	})
	return done(), nil
}
