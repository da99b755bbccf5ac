package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorlease/quorlease/cluster/queue"
)

// queues shows what waits, read when somebody asks.
type queues struct {
	depth, oldest, tokens *prometheus.Desc
	read                  func() []queue.Depth
}

// Queues adds the figures of the waiting queue. Its limits and classes are those
// that an operator wrote.
func (m *Set) Queues(read func() []queue.Depth) {
	labels := []string{"limit", "class"}
	m.collectors = append(m.collectors, &queues{
		read: read,
		depth: prometheus.NewDesc("quorlease_queue_depth",
			"Acquires that wait at this leader, by limit and class.", labels, nil),
		oldest: prometheus.NewDesc("quorlease_queue_oldest_seconds",
			"How long the one of them that came first has waited.", labels, nil),
		tokens: prometheus.NewDesc("quorlease_queue_tokens",
			"What those who wait ask for together.", []string{"limit", "class", "dimension"}, nil),
	})
}

// Describe implements prometheus.Collector.
func (q *queues) Describe(to chan<- *prometheus.Desc) { to <- q.depth; to <- q.oldest; to <- q.tokens }

// Collect implements prometheus.Collector.
func (q *queues) Collect(to chan<- prometheus.Metric) {
	for _, d := range q.read() {
		to <- prometheus.MustNewConstMetric(q.depth, prometheus.GaugeValue, float64(d.Waiting), d.Limit, d.Class)
		to <- prometheus.MustNewConstMetric(q.oldest, prometheus.GaugeValue, d.Oldest.Seconds(), d.Limit, d.Class)
		for _, c := range d.Tokens {
			to <- prometheus.MustNewConstMetric(q.tokens, prometheus.GaugeValue, float64(c.Tokens),
				d.Limit, d.Class, c.Dimension)
		}
	}
}
