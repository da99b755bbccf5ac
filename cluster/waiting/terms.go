package waiting

import (
	"math/bits"
	"strings"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/queue"
	"github.com/quorlease/quorlease/fsm/lineage"
)

// termsOf are what a limit says of its queue. Where it refuses nobody, nobody
// waits.
func termsOf(limit *logv1.Limit) *queue.Terms {
	t := &queue.Terms{
		MaxTokens:  limit.GetQueue().GetMaxTokens(),
		MaxWait:    time.Duration(limit.GetQueue().GetMaxWait()),
		Dimensions: dimensionsOf(limit, limit.GetDimensions()),
	}
	if limit.GetMode() == logv1.Mode_MODE_ENFORCE && !limit.GetUnlimited() {
		t.Max = limit.GetQueue().GetMax()
	}
	for _, c := range limit.GetClasses() {
		t.Classes = append(t.Classes, c.GetName())
	}
	if list := limit.GetQueue().GetWeights(); len(list) > 0 {
		t.Weights = make(map[string]int64, len(list))
		for _, w := range list {
			t.Weights[w.GetClient()] = w.GetWeight()
		}
	}
	if len(limit.GetOverrides()) > 0 {
		t.ForKey = func(key string) []queue.Dimension {
			if o := overrideOf(limit, key); o != nil {
				return dimensionsOf(limit, o.GetDimensions())
			}
			return t.Dimensions
		}
	}
	return t
}

// overrideOf is the override of a key: the key itself first, then the longest
// prefix.
func overrideOf(limit *logv1.Limit, key string) *logv1.Override {
	var best *logv1.Override
	for _, o := range limit.GetOverrides() {
		switch {
		case !o.GetPrefix() && o.GetValue() == key:
			return o
		case o.GetPrefix() && strings.HasPrefix(key, o.GetValue()) &&
			(best == nil || len(o.GetValue()) > len(best.GetValue())):
			best = o
		}
	}
	return best
}

func dimensionsOf(limit *logv1.Limit, specs []*logv1.Dimension) []queue.Dimension {
	list := make([]queue.Dimension, 0, len(specs))
	for _, spec := range specs {
		d := queue.Dimension{Name: spec.GetName()}
		switch limit.GetKind() {
		case logv1.Kind_KIND_CONCURRENCY:
			// Every slot comes back within the life of a lease.
			d.Tokens, d.Per = spec.GetBurst(), time.Duration(limit.GetLease())
		case logv1.Kind_KIND_QUOTA:
			d.Tokens, d.Per = spec.GetBurst(), periods[limit.GetCalendar().GetPeriod()]
		default:
			d.Tokens, d.Per = lineage.Rate(spec, limit.GetTarget())
		}
		for _, c := range limit.GetClasses() {
			d.Parts = append(d.Parts, queue.Part{
				Share: c.GetShare(), SubBurst: partOf(spec.GetBurst(), c.GetBurst()),
			})
		}
		list = append(list, d)
	}
	return list
}

// periods are about how long the windows of a quota are.
var periods = map[logv1.Calendar_Period]time.Duration{
	logv1.Calendar_PERIOD_HOUR:  time.Hour,
	logv1.Calendar_PERIOD_DAY:   24 * time.Hour,
	logv1.Calendar_PERIOD_MONTH: 30 * 24 * time.Hour,
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

// classOf is the class that an acquire is of at a limit with those terms; ok is
// false where the limit has no such class.
func classOf(t *queue.Terms, class string) (name string, ok bool) {
	switch {
	case len(t.Classes) == 0:
		return "", true
	case class == "":
		return t.Classes[0], true
	}
	for _, c := range t.Classes {
		if c == class {
			return class, true
		}
	}
	return "", false
}
