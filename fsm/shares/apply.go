package shares

import (
	"fmt"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/check"
	"github.com/quorlease/quorlease/fsm/refuse"
)

// MaxHeld bounds what one operation says.
const MaxHeld = 1024

// Apply hears what a node says of sessions, all of it or, where something of it can't be
// kept, nothing. find is the configured limit with a name, nil for none. The error is a
// *refuse.Refused.
func (b *Book) Apply(
	now bucket.Instant, op *logv1.ReportShares, find func(name string) *logv1.Limit,
) (*logv1.Result, error) {
	ids, err := checkHeld(op)
	if err != nil {
		return nil, err
	}
	answer := &logv1.SharesResult{Promises: make([]*logv1.Promise, len(ids))}
	for i, h := range op.GetHeld() {
		var next Promise
		switch {
		case h.GetLeft():
			b.Leave(ids[i])
		case Shared(find(h.GetLimit())):
			next = b.Refresh(now, ids[i], h.GetVersion())
		}
		// What was promised of a limit that is not shared any more ends by itself.
		answer.Promises[i] = &logv1.Promise{Version: next.Version, Ppm: next.PPM}
	}
	return &logv1.Result{Kind: &logv1.Result_Shares{Shares: answer}}, nil
}

func checkHeld(op *logv1.ReportShares) ([]ID, error) {
	if n := len(op.GetHeld()); n < 1 || n > MaxHeld {
		return nil, refuse.Field("held", "%d: must be from 1 to %d", n, MaxHeld)
	}
	ids, seen := make([]ID, len(op.GetHeld())), make(map[ID]bool, len(op.GetHeld()))
	for i, h := range op.GetHeld() {
		id, err := checkID(h)
		if err == nil && h.GetVersion() > MaxVersion {
			err = wrong("version", "%d: must be at most %d", h.GetVersion(), uint64(MaxVersion))
		}
		if err == nil && seen[id] {
			err = wrong("session", "%x of limit %q: is there twice", id.Session, id.Limit)
		}
		if err != nil {
			return nil, refuse.Wrong(refuse.At("held", i, ""), err)
		}
		ids[i], seen[id] = id, true
	}
	return ids, nil
}

func wrong(field, format string, values ...any) error {
	return &check.FieldError{Field: field, Problem: fmt.Sprintf(format, values...)}
}
