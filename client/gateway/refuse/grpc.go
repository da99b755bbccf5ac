package refuse

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/quorlease/quorlease/client/grpcmw"
)

// GRPC is the error of a call that does not pass, and the trailer to set with it, if
// there is one. draw is asked once, if at all. RESOURCE_EXHAUSTED is all that has to
// do with a limit.
func (r *Refusal) GRPC(draw Draw) (metadata.MD, error) {
	row, hint := r.Reason.row(), r.Hint(draw)
	refused := grpcmw.Refused{
		Code: row.code, Message: r.message(hint), Reason: row.name, Wait: hint.Wait, Final: hint.Stop,
	}
	for _, p := range r.told() {
		if p.Reason != "" {
			refused.Violations = append(refused.Violations, grpcmw.Violation{
				Subject: grpcmw.Subject(visible(p.Limit), visible(p.Dimension)), Reason: p.Reason,
			})
		}
	}
	if row.code == codes.ResourceExhausted && len(refused.Violations) == 0 {
		// No limit's.
		refused.Violations = []grpcmw.Violation{{Subject: grpcmw.Subject("", ""), Reason: row.name}}
	}
	return refused.Trailer(), refused.Err()
}
