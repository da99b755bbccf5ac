package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/events"
	"github.com/quorlease/quorlease/cluster/warn"
	"github.com/quorlease/quorlease/fsm/tally"
)

// attempts counts what went ahead, and what providers throttled of it. Both only
// grow: what a rate over them says is of the time that it looks at.
type attempts struct{ all, throttled prometheus.Counter }

func newAttempts() attempts {
	return attempts{
		all: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quorlease_provider_attempts_total",
			Help: "Requests that went ahead: acquires granted here, and what clients report of their permits.",
		}),
		throttled: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quorlease_provider_throttled_total",
			Help: "Requests that a provider throttled, as clients report.",
		}),
	}
}

func (a attempts) granted(result *logv1.AcquireResult) {
	if result.GetGranted() && !result.GetRepeated() {
		a.all.Inc()
	}
}

// Tried counts what a client reports: differences since its last report.
func (m *Set) Tried(count tally.Count) {
	m.attempts.all.Add(float64(count.Total))
	m.attempts.throttled.Add(float64(count.Throttled))
}

// offenders shows the worst clients, read when somebody asks.
type offenders struct {
	fraction *prometheus.Desc
	read     func() []warn.Offender
}

// Offenders adds the one figure with names that clients chose. The reader bounds
// how many there are.
func (m *Set) Offenders(read func() []warn.Offender) {
	m.collectors = append(m.collectors, &offenders{
		read: read,
		fraction: prometheus.NewDesc("quorlease_retry_fraction_top",
			"The part of a client's requests in its retry budget's window that were retries, 0 to 1, of the worst clients.",
			[]string{"client", "budget"}, nil),
	})
}

// Describe implements prometheus.Collector.
func (o *offenders) Describe(to chan<- *prometheus.Desc) { to <- o.fraction }

// Collect implements prometheus.Collector. Names that can be printed may be the same
// where the real ones are not: the worst one is shown.
func (o *offenders) Collect(to chan<- prometheus.Metric) {
	shown := make(map[string]bool)
	for _, one := range o.read() {
		client := events.CleanName(one.Client)
		if shown[client] {
			continue
		}
		shown[client] = true
		to <- prometheus.MustNewConstMetric(o.fraction, prometheus.GaugeValue, float64(one.Fraction)/1e6,
			client, budgetLabel(one))
	}
}

// budgetLabel says how a client stands with its budget.
func budgetLabel(o warn.Offender) string {
	switch {
	case o.Silent:
		return "shadow"
	case o.Over:
		return "spent"
	default:
		return "left"
	}
}
