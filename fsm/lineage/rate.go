package lineage

import (
	"math"
	"math/bits"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// HandedOut is what of a limit's rate the authority hands out itself, in hundredths of a
// percent: what target leaves, less what is held back for clients that are cut off.
func HandedOut(limit *logv1.Limit) int64 {
	return limit.GetTarget() * (bucket.Whole - limit.GetShareReserve()) / bucket.Whole
}

// Rate is a dimension's rate after target with the smallest whole numbers that
// say it: amount tokens an interval. It is rounded down where they don't fit.
func Rate(spec *logv1.Dimension, target int64) (amount int64, interval time.Duration) {
	divisor := gcd(target, bucket.Whole)
	up, down := target/divisor, bucket.Whole/divisor
	amount, nanos := spec.GetAmount(), spec.GetInterval()
	if common := gcd(amount, down); common > 0 {
		amount, down = amount/common, down/common
	}
	overAmount, scaled := bits.Mul64(uint64(amount), uint64(up))
	overNanos, longer := bits.Mul64(uint64(nanos), uint64(down))
	if overAmount|overNanos == 0 && scaled <= math.MaxInt64 && longer <= math.MaxInt64 {
		return int64(scaled), time.Duration(longer)
	}
	return amount / down * up, time.Duration(nanos)
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
