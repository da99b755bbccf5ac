package fsmtest

import (
	"strings"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
)

// Slots is a limit of concurrency of so many slots a key, with leases of 5 s.
func Slots(name string, most int64) *logv1.Limit {
	limit := Keyed(name, &logv1.Dimension{Name: "slots", Interval: 1, Burst: most})
	limit.Kind = logv1.Kind_KIND_CONCURRENCY
	return limit
}

// model reads what a limit has beside its numbers.
func (s *script) model(limit *logv1.Limit, o options) {
	s.T.Helper()
	limit.Kind = logv1.Kind(logv1.Kind_value["KIND_"+strings.ToUpper(o.values["kind"])])
	limit.Mode = logv1.Mode(logv1.Mode_value["MODE_"+strings.ToUpper(o.values["mode"])])
	if limit.GetKind() == logv1.Kind_KIND_QUOTA {
		limit.Calendar = &logv1.Calendar{
			Period:   logv1.Calendar_Period(logv1.Calendar_Period_value["PERIOD_"+strings.ToUpper(o.values["period"])]),
			Timezone: "UTC",
		}
	}
	if text := o.values["warn"]; text != "" {
		for _, part := range strings.Split(text, ",") {
			limit.Warn = append(limit.Warn, s.percent(part))
		}
	}
	limit.Escrow, limit.Exact = int64(s.optional(o.values["escrow"])), o.flags["exact"]
	limit.MaxKeysPerClient = s.number(o.values["max_keys_per_client"])
}

// counting is a dimension of a limit. Of slots nothing is refilled, owed or refunded.
func (s *script) counting(limit *logv1.Limit, name, value string) *logv1.Dimension {
	s.T.Helper()
	d := s.dimension(name, value)
	if limit.GetKind() == logv1.Kind_KIND_CONCURRENCY {
		d.MaxDebt, d.MaxOpen = 0, 0
	}
	return d
}

// override reads VALUE[*]:RATE,burst=N for a limit of one dimension, which comes
// before.
func (s *script) override(limit *logv1.Limit, text string) *logv1.Override {
	s.T.Helper()
	value, numbers, _ := strings.Cut(text, ":")
	value, prefix := strings.CutSuffix(value, "*")
	return &logv1.Override{
		Value: value, Prefix: prefix,
		Dimensions: []*logv1.Dimension{s.counting(limit, limit.GetDimensions()[0].GetName(), numbers)},
	}
}
