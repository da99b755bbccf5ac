package fsm

import (
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/check"
	"github.com/quorlease/quorlease/fsm/lineage"
	"github.com/quorlease/quorlease/fsm/refuse"
	"github.com/quorlease/quorlease/fsm/state"
)

// Bounds of what an operation may carry. The servers check the same; here they
// keep a hostile or mistaken leader from filling the state (G10).
const (
	maxReason = 512
	maxHeld   = int64(time.Hour)
	maxSlices = 8192
	// maxReportsShown bounds an Inspection.
	maxReportsShown = 100
)

// namedLimit finds a configured limit.
func (m *Machine) namedLimit(name string) (*state.Limit, error) {
	if !lineage.IsName(name) {
		return nil, refuse.Field("limit", "%q: is no name of a limit", check.Clip(name))
	}
	lim := m.state.FindLimit(name)
	if lim == nil || !lim.Live() {
		return nil, refuse.For(logv1.Refusal_CAUSE_LIMIT_NOT_FOUND, "limit", "%q: there is no such limit", name)
	}
	return lim, nil
}

// liveLimit finds a configured limit and says whether the key suits it.
func (m *Machine) liveLimit(name, key string) (*state.Limit, error) {
	lim, err := m.namedLimit(name)
	if err != nil {
		return nil, err
	}
	if err := refuse.Text("key", key, 0, check.MaxKey); err != nil {
		return nil, err
	}
	if wrong := check.WrongKey(lim.Limit.GetKeyed(), key); wrong != "" {
		return nil, refuse.Field("key", "%s", wrong)
	}
	return lim, nil
}
