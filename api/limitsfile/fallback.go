package limitsfile

import (
	"cmp"

	"github.com/goccy/go-yaml/ast"

	"github.com/quorlease/quorlease/api/limitsfile/strict"
	"github.com/quorlease/quorlease/api/limitsfile/written"
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// modes are what clients may do while nobody answers.
var modes = written.Words[quorleasev1.FallbackMode]{
	{"open", quorleasev1.FallbackMode_OPEN_ON_LOSS},
	{"share", quorleasev1.FallbackMode_SHARE_ON_LOSS},
	{"closed", quorleasev1.FallbackMode_CLOSED_ON_LOSS},
}

// Mode is what clients do while nobody answers. The modes of both protocols have
// the same numbers. A limit that was logged before there were modes is open.
func Mode(l *logv1.Limit) quorleasev1.FallbackMode {
	return cmp.Or(quorleasev1.FallbackMode(l.GetOnQuorumLoss()), quorleasev1.FallbackMode_OPEN_ON_LOSS)
}

// ModeName is a mode as the file calls it, empty for none.
func ModeName(mode quorleasev1.FallbackMode) string { return modes.Name(mode) }

func (d *decoder) mode(n ast.Node, path string) (mode quorleasev1.FallbackMode) {
	if n != nil {
		mode, _ = strict.Value(d.Reader, n, path, "open, share or closed", modes.Parse)
	}
	return mode
}

// fallbackShare reads the fields of fallback, of which there is one.
func (d *decoder) fallbackShare(n ast.Node, path string) *int64 {
	if n == nil {
		return nil
	}
	return d.Share(d.Fields(n, path, "share")["share"], path+".share")
}

// fallback says what clients do while nobody answers: openly, unless the limit
// says otherwise. A share that is absent stays absent, which is not a share of 0
// (T52).
func (r *resolver) fallback(l *quorleasev1.Limit, out *logv1.Limit) {
	mode := cmp.Or(l.GetOnQuorumLoss(), quorleasev1.FallbackMode_OPEN_ON_LOSS)
	if ModeName(mode) == "" {
		r.fail("on_quorum_loss", "%d is no mode", mode)
		return
	}
	out.OnQuorumLoss = logv1.OnQuorumLoss(mode)
	if l.FallbackShareBp != nil {
		out.FallbackShare = new(r.share("fallback_share_bp", l.GetFallbackShareBp(), 0, bucket.Whole))
	}
	// A hundredth of a percent is handed out at least.
	target := max(1, cmp.Or(l.GetTargetBp(), bucket.Whole))
	most := bucket.Whole - (bucket.Whole+target-1)/target
	if out.ShareReserve = r.share("share_reserve_bp", l.GetShareReserveBp(), 0, most); out.ShareReserve > 0 &&
		(mode != quorleasev1.FallbackMode_SHARE_ON_LOSS || l.Concurrency != nil || l.GetQuota() != nil) {
		r.fail("share_reserve_bp", "is for a rate with on_quorum_loss: share")
	}
	if l.GetUnlimited() && mode == quorleasev1.FallbackMode_SHARE_ON_LOSS {
		r.fail("on_quorum_loss", "share: there is nothing to share where unlimited is true")
	}
	if l.GetUnlimited() && l.FallbackShareBp != nil {
		r.fail("fallback_share_bp", "must be absent where unlimited is true")
	}
}
