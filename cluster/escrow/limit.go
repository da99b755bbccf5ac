package escrow

import (
	"math/bits"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
)

// leastPerNode is the burst, in tokens for each member, below which there is no escrow:
// it would be spread too thin.
const leastPerNode = 100

// TermsOf are the terms of the limits that may have escrow in a cluster of so many
// members. The state machine decides: a key may have other numbers.
func TermsOf(limits []*logv1.Limit, members int) []*Terms {
	var list []*Terms
	for _, limit := range limits {
		if t := termsOf(limit, int64(max(1, members))*leastPerNode); t != nil {
			list = append(list, t)
		}
	}
	return list
}

// termsOf is nil where no bucket of the limit may have escrow.
func termsOf(limit *logv1.Limit, least int64) *Terms {
	if limit.GetKind() != logv1.Kind_KIND_RATE || limit.GetMode() != logv1.Mode_MODE_ENFORCE ||
		limit.GetUnlimited() || limit.GetExact() || limit.GetEscrow() <= 0 {
		return nil
	}
	t := &Terms{
		Config: limit, Limit: limit.GetName(), Keyed: limit.GetKeyed(),
		Life: time.Duration(limit.GetEscrow()), Lease: time.Duration(limit.GetLease()),
	}
	for _, c := range limit.GetClasses() {
		t.Classes = append(t.Classes, c.GetName())
	}
	some := false
	for i, d := range limit.GetDimensions() {
		one := Dimension{Name: d.GetName(), Bursts: make([]int64, t.classes())}
		for class := range one.Bursts {
			burst := burstOf(limit, d, class)
			for _, o := range limit.GetOverrides() {
				burst = max(burst, burstOf(limit, o.GetDimensions()[i], class))
			}
			if burst >= least {
				one.Bursts[class], some = burst, true
			}
		}
		t.Dimensions = append(t.Dimensions, one)
	}
	if !some {
		return nil
	}
	return t
}

// burstOf is the effective burst of a class: what the others' own parts leave. It is 0
// where nothing is refilled.
func burstOf(limit *logv1.Limit, d *logv1.Dimension, class int) int64 {
	if d.GetAmount() == 0 {
		return 0
	}
	burst := d.GetBurst()
	for i, c := range limit.GetClasses() {
		if i != class {
			burst -= partOf(d.GetBurst(), c.GetBurst())
		}
	}
	return burst
}

// partOf is a part of a burst in hundredths of a percent, in whole tokens.
func partOf(burst, part int64) int64 {
	hi, lo := bits.Mul64(uint64(burst), uint64(part))
	if hi >= 10_000 {
		return burst
	}
	whole, _ := bits.Div64(hi, lo, 10_000)
	return int64(whole)
}
