// Package gatewayprom exports a gateway's figures to Prometheus. It is apart from the
// gateway so that programs without Prometheus are built without it.
package gatewayprom

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorlease/quorlease/client/gateway"
)

// Source is a gateway, as far as its figures go. *gateway.Gateway is one. Stats is called
// at each scrape, possibly by several at once, and must not block.
type Source interface {
	Stats() gateway.Stats
}

// Collector is a prometheus.Collector. No label has a name in it that a client, a tenant,
// or an operator has chosen: the list of series never grows (G10). It is safe for
// concurrent use.
type Collector struct {
	source  Source
	figures []described
	ratio   *prometheus.Desc

	mu    sync.Mutex
	tally tally // guarded by mu
}

// described is a figure with its description.
type described struct {
	figure
	desc *prometheus.Desc
}

// New returns a collector of one gateway's figures. Labels are added to every series: where
// a process has several gateways, they tell them apart. Register it with a
// prometheus.Registerer.
func New(source Source, labels prometheus.Labels) *Collector {
	c := &Collector{source: source}
	for _, f := range figures() {
		c.figures = append(c.figures, described{f, prometheus.NewDesc(f.name, f.help, f.labels, labels)})
	}
	c.ratio = prometheus.NewDesc(ratioName, ratioHelp, nil, labels)
	return c
}

// Describe tells the names of the series.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	for i := range c.figures {
		to <- c.figures[i].desc
	}
	to <- c.ratio
}

// Collect reads the figures, all at one moment. Every series is there from the beginning,
// so that its rate can be computed from the first event on.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	c.mu.Lock()
	// With the lock: of two scrapes the later one has the later figures.
	stats := c.source.Stats()
	c.tally.add(&stats.Estimates)
	ratio := prometheus.MustNewConstHistogram(c.ratio, c.tally.count, c.tally.sum, c.tally.cumulative())
	c.mu.Unlock()
	for i := range c.figures {
		f := &c.figures[i]
		for _, p := range f.read(&stats) {
			to <- prometheus.MustNewConstMetric(f.desc, f.kind, p.value, p.labels...)
		}
	}
	to <- ratio
}
