package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// levelsMax bounds the limits whose levels are shown: the first by name.
const levelsMax = 200

// View runs its argument with the machine and authority time, while no entry is
// applied.
type View func(func(*fsm.Machine, bucket.Instant))

// levels shows what is left of limits, read when somebody asks.
type levels struct {
	level, burst *prometheus.Desc
	view         View
}

// Levels adds what is left of limits that have no keys. Keys are what clients
// choose, and there may be a million of them.
func (m *Set) Levels(view View) {
	labels := []string{"limit", "dimension"}
	m.collectors = append(m.collectors, &levels{
		view: view,
		level: prometheus.NewDesc("quorlease_limit_level_tokens",
			"Tokens that are left in the bucket of a limit without keys.", labels, nil),
		burst: prometheus.NewDesc("quorlease_limit_burst_tokens", "What that bucket holds.", labels, nil),
	})
}

// Describe implements prometheus.Collector.
func (l *levels) Describe(to chan<- *prometheus.Desc) { to <- l.level; to <- l.burst }

// Collect implements prometheus.Collector.
func (l *levels) Collect(to chan<- prometheus.Metric) {
	var seen []*fsm.Inspection
	l.view(func(m *fsm.Machine, now bucket.Instant) {
		limits, _ := m.Limits("")
		for _, limit := range limits {
			if limit.GetKeyed() {
				continue
			}
			if one, err := m.Glance(now, limit.GetName(), ""); err == nil && len(seen) < levelsMax {
				seen = append(seen, one)
			}
		}
	})
	for _, one := range seen {
		for _, b := range one.Buckets {
			limit := one.Limit.GetName()
			to <- prometheus.MustNewConstMetric(l.level, prometheus.GaugeValue, float64(b.Level), limit, b.Dimension)
			to <- prometheus.MustNewConstMetric(l.burst, prometheus.GaugeValue, float64(b.Burst), limit, b.Dimension)
		}
	}
}
