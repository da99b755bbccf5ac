package metrics

import "github.com/quorlease/quorlease/fsm"

// Sizes adds the gauges of how much there is in the replicated state, which read says
// when somebody asks.
func (m *Set) Sizes(read func() fsm.Counts) {
	for _, figure := range []struct {
		name, help string
		of         func(fsm.Counts) int
	}{
		{"quorlease_buckets", "Keys that have buckets.", func(c fsm.Counts) int { return c.Keys }},
		{
			"quorlease_leases", "Leases on record, ended ones that are remembered included.",
			func(c fsm.Counts) int { return c.Leases },
		},
		{
			"quorlease_keys_controlled", "Keys that providers' answers have paused, slowed down or blocked.",
			func(c fsm.Counts) int { return c.Controlled },
		},
		{
			"quorlease_keys_blocked", "Keys that are closed until a person clears them.",
			func(c fsm.Counts) int { return c.Blocked },
		},
	} {
		m.Gauge(figure.name, figure.help, func() float64 { return float64(figure.of(read())) })
	}
}
