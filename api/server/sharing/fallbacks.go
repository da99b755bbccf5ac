package sharing

import (
	"context"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server/convert"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// Viewer shows a node's replica.
type Viewer interface {
	// View calls read at once where stale.
	View(ctx context.Context, stale bool, read func(*fsm.Machine, bucket.Instant)) error
	// Revision is that of the limits that the node has applied.
	Revision() uint64
}

// Fallbacks are the rules by which the caller of an acquire decides by itself
// should nobody answer any more. A caller that says by known that it holds those
// of the revision now gets none, and costs neither lock nor memory. They are read
// from this node's replica: one that lags gives older rules, with their revision.
func Fallbacks(ctx context.Context, node Viewer, known *uint64, op *logv1.Acquire) *quorleasev1.Fallbacks {
	if known != nil && *known == node.Revision() {
		return nil
	}
	var found *quorleasev1.Fallbacks
	err := node.View(ctx, true, func(m *fsm.Machine, _ bucket.Instant) { found = convert.Fallbacks(m, op) })
	if err != nil {
		// The decision is good without them; the next answer has them.
		return nil
	}
	return found
}
