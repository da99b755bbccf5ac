// Package expand turns what an acquire says of its work into the charges of one
// revision of the limits, as a node has applied them.
package expand

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/quorlease/quorlease/api/limitsfile"
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/match"
)

// TriesMax bounds how often one acquire is expanded: every time the limits had
// changed before it was decided. Limits change by hand.
const TriesMax = 4

// Viewer reads a node's replicated state.
type Viewer interface {
	// View calls read at once where stale, else when the node has applied all that
	// was committed when it was asked.
	View(ctx context.Context, stale bool, read func(*fsm.Machine, bucket.Instant)) error
	// Revision is that of the limits that the node has applied. It costs nothing.
	Revision() uint64
}

// Expander keeps the index of the limits now. It is safe for concurrent use.
type Expander struct {
	viewer Viewer
	index  atomic.Pointer[match.Index]
}

// New expands by the limits of a node.
func New(viewer Viewer) *Expander { return &Expander{viewer: viewer} }

// From is the index of the limits of a machine, which must not change meanwhile.
func (e *Expander) From(m *fsm.Machine) *match.Index {
	index := e.index.Load()
	if index == nil || index.Revision() != m.Revision() {
		limits, _ := m.Limits("")
		index = match.New(m.Revision(), limits)
		e.index.Store(index)
	}
	return index
}

// Acquire gives op the charges of r and the revision that they are of. Where r is
// nil there is nothing to expand. The error is a *fsm.Refused, one of a node's, or
// names the attributes.
func (e *Expander) Acquire(ctx context.Context, op *logv1.Acquire, r *match.Request) error {
	if r == nil {
		return nil
	}
	index := e.index.Load()
	if index == nil || index.Revision() != e.viewer.Revision() {
		if err := e.look(ctx, true, func(found *match.Index) { index = found }); err != nil {
			return err
		}
	}
	charges, err := index.Charges(r)
	if err != nil {
		return Explain(err)
	}
	revision := index.Revision()
	op.Charges, op.Revision = charges, &revision
	return nil
}

// Refresh waits until the node has the limits that were committed last. An acquire
// that was refused because they are others than its charges are of may be expanded
// again then.
func (e *Expander) Refresh(ctx context.Context) error {
	return e.look(ctx, false, func(*match.Index) {})
}

func (e *Expander) look(ctx context.Context, stale bool, found func(*match.Index)) error {
	return e.viewer.View(ctx, stale, func(m *fsm.Machine, _ bucket.Instant) { found(e.From(m)) })
}

// Peek gives op, an acquire that is only looked at, the charges of r. It is for
// use in a view of m.
func (e *Expander) Peek(m *fsm.Machine, op *logv1.Acquire, r *match.Request) error {
	if r == nil {
		return nil
	}
	charges, err := e.From(m).Charges(r)
	op.Charges = charges
	return Explain(err)
}

// Listening are the buckets that hear what a provider said of the work r.
func (e *Expander) Listening(ctx context.Context, r *match.Request) ([]match.Target, error) {
	var targets []match.Target
	var wrong error
	err := e.look(ctx, true, func(x *match.Index) { targets, wrong = x.Listening(r) })
	if err != nil {
		return nil, err
	}
	return targets, Explain(wrong)
}

// Explain says what is wrong with attributes as the error table wants it: no limit
// fits, or the field is bad.
func Explain(err error) error {
	var wrong *match.Error
	switch {
	case errors.As(err, &wrong):
		return limitsfile.FieldErrors{{Field: "attributes", Problem: wrong.Problem}}
	case errors.Is(err, match.ErrNone):
		return &fsm.Refused{Refusal: &logv1.Refusal{
			Cause: logv1.Refusal_CAUSE_LIMIT_NOT_FOUND, Field: "attributes", Message: "attributes: " + err.Error(),
		}}
	}
	return err
}

// IsStale says that an acquire was refused because its charges are of another
// revision of the limits than the one now. Nothing has happened.
func IsStale(r *logv1.Refusal) bool { return r.GetCause() == logv1.Refusal_CAUSE_REVISION_CHANGED }
