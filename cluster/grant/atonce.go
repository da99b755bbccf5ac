package grant

import (
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/escrow"
)

// Grant grants an acquire from what the node holds, or is nil and has done nothing. It is
// the part of Admit that keeps nothing of its arguments: room, which is new or was
// cleared, has the answer.
func (o *Office) Grant(acquire *logv1.Acquire, room *escrow.Room) *logv1.Result {
	if acquire.GetTrack() || len(acquire.GetLeaseId()) > 0 && o.remembers(acquire.GetLeaseId()) {
		return nil
	}
	return o.Wallet.TakeInto(acquire, room)
}
