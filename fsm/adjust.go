package fsm

import (
	"fmt"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/check"
	"github.com/quorlease/quorlease/fsm/effect"
	"github.com/quorlease/quorlease/fsm/refuse"
	"github.com/quorlease/quorlease/fsm/state"
)

// applyAdjust changes a level by hand. It is the one operation that may break the
// debit bound (G1), on an operator's word, and it leaves an effect.
func (m *Machine) applyAdjust(op *logv1.Adjust) (*logv1.Result, error) {
	if clear, ok := op.GetChange().(*logv1.Adjust_Clear); ok {
		return m.applyClear(op, clear.Clear)
	}
	lim, d, err := m.adjusted(op)
	if err != nil {
		return nil, err
	}
	k := m.state.FindKey(lim.ID, op.GetKey())
	if k == nil {
		if full := m.state.NoRoom(lim); full != "" {
			return nil, refuse.Field("key", "%q: %s", check.Clip(op.GetKey()), full)
		}
		k = m.state.AddKey(lim, op.GetKey())
	}
	k = m.state.ChangeKey(lim, k)
	shape, b := lim.Now().For(k.Name).Dimensions[d].Shape, &k.Held(d).Bucket
	b.Advance(shape, m.state.Now)
	before := b.Remaining(shape)
	value := "reset"
	if op.GetReset_() {
		b.Reset(shape)
	} else if add := op.GetAdd(); add >= 0 {
		value = fmt.Sprintf("+%d", add)
		b.Raise(shape, add)
	} else {
		value = fmt.Sprint(add)
		b.Lower(shape, -add)
	}
	m.effects.Add(effect.Effect{
		Kind: effect.Adjusted, Limit: lim.Name, Key: op.GetKey(), Dimension: op.GetDimension(),
		Value: value, Client: op.GetAuthor(), Text: op.GetReason(),
	})
	one := func(tokens int64) *logv1.Remaining {
		return &logv1.Remaining{Limit: lim.Name, Key: op.GetKey(), Dimension: op.GetDimension(), Tokens: tokens}
	}
	return &logv1.Result{Kind: &logv1.Result_Adjust{
		Adjust: &logv1.AdjustResult{Before: one(before), After: one(b.Remaining(shape))},
	}}, nil
}

// applyClear opens a key again after a block, a pause or a ramp. There are no levels
// to answer: they stay as they are.
func (m *Machine) applyClear(op *logv1.Adjust, clear bool) (*logv1.Result, error) {
	if !clear {
		return nil, refuse.Field("clear_block", "false: must be true")
	}
	if op.GetDimension() != "" {
		return nil, refuse.Field("dimension", "%q: a key is opened in all its dimensions", check.Clip(op.GetDimension()))
	}
	lim, err := m.adjustedLimit(op)
	if err != nil {
		return nil, err
	}
	m.feedback.Clear(lim, op.GetKey(), op.GetAuthor(), op.GetReason())
	return &logv1.Result{Kind: &logv1.Result_Adjust{Adjust: &logv1.AdjustResult{}}}, nil
}

// adjustedLimit finds the limit of an Adjust, whose change is in order.
func (m *Machine) adjustedLimit(op *logv1.Adjust) (*state.Limit, error) {
	if err := refuse.Text("reason", op.GetReason(), 1, maxReason); err != nil {
		return nil, err
	}
	if err := refuse.Text("author", op.GetAuthor(), 0, check.MaxText); err != nil {
		return nil, err
	}
	return m.liveLimit(op.GetLimit(), op.GetKey())
}

// adjusted finds what an Adjust is about.
func (m *Machine) adjusted(op *logv1.Adjust) (lim *state.Limit, dimension int, err error) {
	switch change := op.GetChange().(type) {
	case *logv1.Adjust_Add:
		if n := change.Add; n == 0 || n < -bucket.MaxTokens || n > bucket.MaxTokens {
			return nil, 0, refuse.Field("add", "%d: must be from %d to %d and not 0", n,
				-int64(bucket.MaxTokens), int64(bucket.MaxTokens))
		}
	case *logv1.Adjust_Reset_:
		if !change.Reset_ {
			return nil, 0, refuse.Field("reset", "false: must be true")
		}
	default:
		return nil, 0, refuse.Field("change", "none: add, reset or clear_block")
	}
	lim, err = m.adjustedLimit(op)
	if err != nil {
		return nil, 0, err
	}
	if lim.Limit.GetKind() == logv1.Kind_KIND_CONCURRENCY {
		return nil, 0, refuse.Field("limit", "%q: slots are held by leases, there is no level to change", lim.Name)
	}
	dimension = lim.Now().Find(op.GetDimension())
	if dimension < 0 || !lim.Now().Dimensions[dimension].Live() {
		return nil, 0, refuse.Field("dimension", "%q: limit %q does not count it", check.Clip(op.GetDimension()), lim.Name)
	}
	return lim, dimension, nil
}
