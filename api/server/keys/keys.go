// Package keys finds the most spent keys of a limit on one node.
package keys

import (
	"context"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server/convert"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// Viewer reads the replicated state.
type Viewer interface {
	View(ctx context.Context, stale bool, read func(*fsm.Machine, bucket.Instant)) error
}

// Of answers Limits.Keys. The first look is as fresh as the call unless it may be
// stale, and entries are applied between two.
func Of(
	ctx context.Context, viewer Viewer, r *quorleasev1.LimitsKeysRequest,
) (*quorleasev1.LimitsKeysResponse, error) {
	walk, err := convert.Keys(r)
	if err != nil {
		return nil, err
	}
	for done, stale := false, r.GetStale(); !done; stale = true {
		var refused error
		if err := viewer.View(ctx, stale, func(m *fsm.Machine, now bucket.Instant) {
			done, refused = walk.Step(m, now)
		}); err != nil {
			return nil, err
		}
		if refused != nil {
			return nil, refused
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return convert.KeysAnswer(walk), nil
}
