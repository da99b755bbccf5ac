package fsm

import (
	"errors"
	"fmt"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/lineage"
	"github.com/quorlease/quorlease/fsm/state"
)

// Bounds of what an operation may carry. The servers check the same; here they
// keep a hostile or mistaken leader from filling the state (G10).
const (
	maxUsages = 64
	maxReason = 512
	maxSlices = 8192
	// maxAdmitted bounds the counts of one report, maxReportsShown an Inspection.
	maxAdmitted     = 64
	maxReportsShown = 100
)

func checkLeaseID(id []byte) (state.LeaseID, error) {
	if len(id) != len(state.LeaseID{}) {
		return state.LeaseID{}, badField("lease_id", "%d bytes: must be %d", len(id), len(state.LeaseID{}))
	}
	return state.LeaseID(id), nil
}

// checkText bounds a name that people chose.
func checkText(field, text string, least, most int) error {
	return asRefusal("", state.CheckText(field, text, least, most))
}

// asRefusal makes a bad field out of the *state.FieldError of a check. prefix is
// where in the operation the field is.
func asRefusal(prefix string, err error) error {
	if err == nil {
		return nil
	}
	var field *state.FieldError
	if !errors.As(err, &field) {
		return err
	}
	return badField(prefix+field.Field, "%s", field.Problem)
}

// checkCharge looks at what can be seen without the state.
func checkCharge(i int, c *logv1.Charge) error {
	switch {
	case !lineage.IsName(c.GetLimit()):
		return badField(at("charges", i, "limit"), "%q: is no name of a limit", state.Clip(c.GetLimit()))
	case !lineage.IsWord(c.GetDimension()):
		return badField(at("charges", i, "dimension"), "%q: is no name of a dimension", state.Clip(c.GetDimension()))
	case c.GetAmount() < 1 || c.GetAmount() > bucket.MaxTokens:
		return badField(at("charges", i, "amount"), "%d: must be from 1 to %d", c.GetAmount(), int64(bucket.MaxTokens))
	case len(c.GetKey()) > state.MaxKey:
		return badField(at("charges", i, "key"), "%d bytes: must be at most %d", len(c.GetKey()), state.MaxKey)
	case !state.Printable(c.GetKey()):
		return badField(at("charges", i, "key"), "%q: must be valid UTF-8 without control characters",
			state.Clip(c.GetKey()))
	}
	return nil
}

// wrongKey says what is wrong with a key: there has to be one where the limit
// has keys, and only there. It is empty where all is well.
func wrongKey(keyed bool, key string) string {
	switch {
	case keyed && key == "":
		return "none: the limit has one bucket a key"
	case !keyed && key != "":
		return fmt.Sprintf("%q: the limit has no keys", state.Clip(key))
	}
	return ""
}

// liveLimit finds a configured limit and says whether the key suits it.
func (m *Machine) liveLimit(name, key string) (*state.Limit, error) {
	if !lineage.IsName(name) {
		return nil, badField("limit", "%q: is no name of a limit", state.Clip(name))
	}
	lim := m.state.FindLimit(name)
	if lim == nil || !lim.Live() {
		return nil, refuse(logv1.Refusal_CAUSE_LIMIT_NOT_FOUND, "limit", "%q: there is no such limit", name)
	}
	if err := checkText("key", key, 0, state.MaxKey); err != nil {
		return nil, err
	}
	if wrong := wrongKey(lim.Limit.GetKeyed(), key); wrong != "" {
		return nil, badField("key", "%s", wrong)
	}
	return lim, nil
}

// at names a field of an element of a list.
func at(list string, i int, name string) string { return fmt.Sprintf("%s[%d].%s", list, i, name) }
