package lineage

import (
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/digest"
)

// Digest adds the lineage to a digest, field by field in a fixed order: the
// bytes of a marshalled message are not the same everywhere (G9).
func (l *Lineage) Digest(sum *digest.Sum) {
	sum.Word(uint64(l.ID))
	sum.Text(l.Name)
	sum.Word(uint64(l.NextDimension))
	DigestLimit(sum, l.Limit)
	sum.Int(int64(l.Deleted))
	sum.Word(uint64(len(l.Versions)))
	for _, v := range l.Versions {
		sum.Word(uint64(v.Number))
		sum.Int(int64(v.Since))
		sum.Word(uint64(len(v.Dimensions)))
		for i := range v.Dimensions {
			v.Dimensions[i].digest(sum)
		}
	}
}

func (d *Dimension) digest(sum *digest.Sum) {
	sum.Word(uint64(d.ID))
	sum.Int(int64(d.Until))
	sum.Int(d.Target)
	digestDimension(sum, d.Spec)
	digestClasses(sum, d.Classes)
	d.Pristine.Walk(sum.Int)
}

// DigestLimit adds a limit, which may be nil.
func DigestLimit(sum *digest.Sum, limit *logv1.Limit) {
	sum.Bool(limit != nil)
	if limit == nil {
		return
	}
	sum.Text(limit.GetName())
	sum.Bool(limit.GetKeyed())
	sum.Bool(limit.GetUnlimited())
	sum.Int(limit.GetTarget())
	sum.Bool(limit.GetExact())
	sum.Int(limit.GetLease())
	sum.Int(limit.GetMaxKeys())
	sum.Word(uint64(len(limit.GetDimensions())))
	for _, d := range limit.GetDimensions() {
		digestDimension(sum, d)
	}
	digestClasses(sum, limit.GetClasses())
	// Logs that were written before there were fallbacks keep their hashes.
	if limit.GetOnQuorumLoss() != logv1.OnQuorumLoss_ON_QUORUM_LOSS_UNSPECIFIED || limit.FallbackShare != nil {
		sum.Word(uint64(limit.GetOnQuorumLoss()))
		sum.Bool(limit.FallbackShare != nil)
		sum.Int(limit.GetFallbackShare())
	}
}

func digestDimension(sum *digest.Sum, d *logv1.Dimension) {
	sum.Text(d.GetName())
	sum.Int(d.GetAmount())
	sum.Int(d.GetInterval())
	sum.Int(d.GetBurst())
	sum.Int(d.GetMaxDebt())
	sum.Int(d.GetMaxOpen())
}

func digestClasses(sum *digest.Sum, classes []*logv1.Class) {
	sum.Word(uint64(len(classes)))
	for _, c := range classes {
		sum.Text(c.GetName())
		sum.Int(c.GetShare())
		sum.Int(c.GetBurst())
	}
}
