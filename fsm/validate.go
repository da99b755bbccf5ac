package fsm

import (
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
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

// checkCharge looks at what can be seen without the state.
func checkCharge(i int, c *logv1.Charge) error {
	switch {
	case !lineage.IsName(c.GetLimit()):
		return refuse.Field(refuse.At("charges", i, "limit"), "%q: is no name of a limit", check.Clip(c.GetLimit()))
	case !lineage.IsWord(c.GetDimension()):
		return refuse.Field(refuse.At("charges", i, "dimension"), "%q: is no name of a dimension",
			check.Clip(c.GetDimension()))
	case c.GetAmount() < 1 || c.GetAmount() > bucket.MaxTokens:
		return refuse.Field(refuse.At("charges", i, "amount"), "%d: must be from 1 to %d",
			c.GetAmount(), int64(bucket.MaxTokens))
	case c.GetKeep() < 0 || c.GetKeep() > bucket.MaxTokens:
		return refuse.Field(refuse.At("charges", i, "keep"), "%d: must be from 0 to %d", c.GetKeep(), int64(bucket.MaxTokens))
	case len(c.GetKey()) > check.MaxKey:
		return refuse.Field(refuse.At("charges", i, "key"), "%d bytes: must be at most %d", len(c.GetKey()), check.MaxKey)
	case !check.Printable(c.GetKey()):
		return refuse.Field(refuse.At("charges", i, "key"), "%q: must be valid UTF-8 without control characters",
			check.Clip(c.GetKey()))
	}
	return nil
}

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
