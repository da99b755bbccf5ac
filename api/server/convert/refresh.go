package convert

import (
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/quorlease/quorlease/api/limitsfile"
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/fsm/shares"
)

// heldMax bounds the limits of one refresh.
const heldMax = 64

// Refresh checks all of a refresh by a session, an id of 16 bytes, of owner, and makes
// what a node says of it.
func Refresh(r *quorleasev1.RefreshRequest, session []byte, owner string) (*logv1.ReportShares, error) {
	c := &checker{}
	if n := len(r.GetHeld()); n < 1 || n > heldMax {
		c.fail("held", "%d entries: must be 1 to %d", n, heldMax)
		return nil, c.err()
	}
	said := &logv1.ReportShares{}
	seen := make(map[string]int, len(r.GetHeld()))
	for i, h := range r.GetHeld() {
		c.problem(at("held", i, "limit"), limitsfile.NameProblem(h.GetLimit()))
		if h.GetVersion() > shares.MaxVersion {
			c.fail(at("held", i, "version"), "%d is out of range 0..%d", h.GetVersion(), uint64(shares.MaxVersion))
		}
		if first, twice := seen[h.GetLimit()]; twice {
			c.fail(at("held", i, "limit"), "the same as held[%d]", first)
			continue
		}
		seen[h.GetLimit()] = i
		said.Held = append(said.Held, &logv1.HeldShare{
			Limit: h.GetLimit(), Session: session, Owner: owner, Version: h.GetVersion(), Left: h.GetLeft(),
		})
	}
	return said, c.err()
}

// Promised is what a session is told of a promise that is so old at most.
func Promised(limit string, p shares.Promise, age time.Duration) *quorleasev1.Fallback {
	out := &quorleasev1.Fallback{Limit: limit}
	if p.Version == 0 {
		return out
	}
	out.Mode, out.SharePpm, out.Version = quorleasev1.FallbackMode_SHARE_ON_LOSS, proto.Int64(p.PPM), p.Version
	out.ValidFor = durationpb.New(max(0, shares.ValidFor-age))
	out.Hold = durationpb.New(max(0, shares.Hold-age))
	return out
}
