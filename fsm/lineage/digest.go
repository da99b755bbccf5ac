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
		v.digest(sum)
	}
}

// digest adds what a version may have beside its dimensions.
func (v *Version) digest(sum *digest.Sum) {
	digestCalendar(sum, v.Calendar)
	digestNumber(sum, tagStarts, v.Starts)
	digestNumber(sum, tagEnds, v.Ends)
	if len(v.Overrides) == 0 {
		return
	}
	sum.Word(tagOverrides)
	sum.Word(uint64(len(v.Overrides)))
	for i := range v.Overrides {
		o := &v.Overrides[i]
		sum.Text(o.Value)
		sum.Bool(o.Prefix)
		sum.Bool(o.Removed)
		for at := range o.Dimensions {
			digestDimension(sum, o.Dimensions[at].Spec)
			o.Dimensions[at].Pristine.Walk(sum.Int)
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
	digestNumber(sum, tagKind, int64(d.Kind))
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
	digestModel(sum, limit)
}

// Fields that came later are tagged, and left out where a limit does not have them,
// so that logs that were written before keep their hashes. Never change a tag.
const (
	tagKind = 100 + iota
	tagMode
	tagCalendar
	tagRamp
	tagAdaptive
	tagMatch
	tagPer
	tagOverrides
	tagQueue
	tagWarn
	tagKeysPerClient
	tagSource
	tagEscrow
	tagStarts
	tagEnds
	tagShareReserve
)

// digestModel adds what a limit may have beside a rate.
func digestModel(sum *digest.Sum, limit *logv1.Limit) {
	digestNumber(sum, tagKind, int64(limit.GetKind()))
	digestNumber(sum, tagMode, int64(limit.GetMode()))
	digestCalendar(sum, limit.Calendar)
	digestNumber(sum, tagRamp, limit.GetRamp())
	if a := limit.Adaptive; a != nil {
		sum.Word(tagAdaptive)
		sum.Int(a.GetDecrease())
		sum.Int(a.GetStep())
		sum.Int(a.GetInterval())
		sum.Int(a.GetFloor())
	}
	digestAttributes(sum, limit)
	digestOverrides(sum, limit.GetOverrides())
	digestQueue(sum, limit.Queue)
	if n := len(limit.GetWarn()); n > 0 {
		sum.Word(tagWarn)
		sum.Word(uint64(n))
		for _, part := range limit.GetWarn() {
			sum.Int(part)
		}
	}
	digestNumber(sum, tagKeysPerClient, limit.GetMaxKeysPerClient())
	if s := limit.Source; s != nil {
		sum.Word(tagSource)
		sum.Text(s.GetUrl())
		sum.Text(s.GetVerifiedAt())
	}
	digestNumber(sum, tagEscrow, limit.GetEscrow())
	digestNumber(sum, tagShareReserve, limit.GetShareReserve())
}

// digestNumber adds a number that is not 0.
func digestNumber(sum *digest.Sum, tag uint64, number int64) {
	if number != 0 {
		sum.Word(tag)
		sum.Int(number)
	}
}

func digestCalendar(sum *digest.Sum, c *logv1.Calendar) {
	if c == nil {
		return
	}
	sum.Word(tagCalendar)
	sum.Word(uint64(c.GetPeriod()))
	sum.Text(c.GetTimezone())
}

func digestAttributes(sum *digest.Sum, limit *logv1.Limit) {
	if n := len(limit.GetMatch()); n > 0 {
		sum.Word(tagMatch)
		sum.Word(uint64(n))
		for _, m := range limit.GetMatch() {
			sum.Text(m.GetAttribute())
			sum.Text(m.GetValue())
			sum.Bool(m.GetPrefix())
		}
	}
	if n := len(limit.GetPer()); n > 0 {
		sum.Word(tagPer)
		sum.Word(uint64(n))
		for _, attribute := range limit.GetPer() {
			sum.Text(attribute)
		}
	}
}

func digestOverrides(sum *digest.Sum, overrides []*logv1.Override) {
	if len(overrides) == 0 {
		return
	}
	sum.Word(tagOverrides)
	sum.Word(uint64(len(overrides)))
	for _, o := range overrides {
		sum.Text(o.GetValue())
		sum.Bool(o.GetPrefix())
		sum.Word(uint64(len(o.GetDimensions())))
		for _, d := range o.GetDimensions() {
			digestDimension(sum, d)
		}
	}
}

func digestQueue(sum *digest.Sum, q *logv1.Queue) {
	if q == nil {
		return
	}
	sum.Word(tagQueue)
	sum.Int(q.GetMax())
	sum.Int(q.GetMaxTokens())
	sum.Int(q.GetMaxWait())
	sum.Word(uint64(len(q.GetWeights())))
	for _, w := range q.GetWeights() {
		sum.Text(w.GetClient())
		sum.Int(w.GetWeight())
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
