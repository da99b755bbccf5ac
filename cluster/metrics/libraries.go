package metrics

import (
	"slices"
	"strings"
	"sync"

	armon "github.com/armon/go-metrics"
	hashi "github.com/hashicorp/go-metrics"
	"github.com/prometheus/client_golang/prometheus"
)

// seriesMax bounds the series of one library: the names are fixed, but one label
// is a peer, and peers come and go.
const seriesMax = 2000

// library collects what raft or its log store says of itself, under the names it
// gives. A sample becomes a sum and a count. The sinks that the metrics libraries
// bring keep quantiles of a sliding window, of fifteen samples for every entry on
// every node, which was a thirtieth of what a commit costs.
//
// It implements prometheus.Collector and is safe for concurrent use.
type library struct {
	// self makes it different from every other collector: the figures are not
	// known beforehand.
	self *prometheus.Desc

	mu     sync.Mutex
	series map[string]*series // guarded by mu
	key    []byte             // guarded by mu: the name and label values looked for
}

// series is one figure with its label values.
type series struct {
	desc   *prometheus.Desc
	values []string
	kind   kind
	sum    float64
	count  uint64
}

type kind int

const (
	gauge kind = iota + 1
	counter
	sample
)

// note takes one figure. labels are pairs of a name and a value.
func (l *library) note(kind kind, key []string, value float32, labels ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.key = l.key[:0]
	for _, part := range key {
		l.key = append(append(l.key, part...), '_')
	}
	for _, part := range labels {
		l.key = append(append(l.key, 0), part...)
	}
	s := l.series[string(l.key)]
	if s == nil {
		if len(l.series) >= seriesMax {
			return
		}
		s = newSeries(kind, key, labels)
		l.series[string(l.key)] = s
	}
	s.count++
	if kind == gauge {
		s.sum = 0
	}
	s.sum += float64(value)
}

func newSeries(kind kind, key, labels []string) *series {
	name := strings.Map(func(r rune) rune {
		if strings.ContainsRune(" .=-/", r) {
			return '_'
		}
		return r
	}, strings.Join(key, "_"))
	s := &series{kind: kind}
	var names []string
	for pair := range slices.Chunk(labels, 2) {
		names, s.values = append(names, pair[0]), append(s.values, pair[1])
	}
	s.desc = prometheus.NewDesc(name, strings.Join(key, " "), names, nil)
	return s
}

// Describe implements prometheus.Collector.
func (l *library) Describe(to chan<- *prometheus.Desc) { to <- l.self }

// Collect implements prometheus.Collector.
func (l *library) Collect(to chan<- prometheus.Metric) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.series {
		to <- s.metric()
	}
}

func (s *series) metric() prometheus.Metric {
	switch s.kind {
	case sample:
		return prometheus.MustNewConstSummary(s.desc, s.count, s.sum, nil, s.values...)
	case counter:
		return prometheus.MustNewConstMetric(s.desc, prometheus.CounterValue, s.sum, s.values...)
	default:
		return prometheus.MustNewConstMetric(s.desc, prometheus.GaugeValue, s.sum, s.values...)
	}
}

func newLibrary(name string) *library {
	return &library{self: prometheus.NewDesc(name, name, nil, nil), series: map[string]*series{}}
}

// raftSink is a library as raft's metrics package sees it.
type raftSink struct{ *library }

var _ hashi.MetricSink = raftSink{}

func (s raftSink) SetGauge(key []string, v float32)    { s.note(gauge, key, v) }
func (s raftSink) IncrCounter(key []string, v float32) { s.note(counter, key, v) }
func (s raftSink) AddSample(key []string, v float32)   { s.note(sample, key, v) }
func (raftSink) EmitKey([]string, float32)             {}

func (s raftSink) SetGaugeWithLabels(key []string, v float32, labels []hashi.Label) {
	s.note(gauge, key, v, raftPairs(labels)...)
}

func (s raftSink) IncrCounterWithLabels(key []string, v float32, labels []hashi.Label) {
	s.note(counter, key, v, raftPairs(labels)...)
}

func (s raftSink) AddSampleWithLabels(key []string, v float32, labels []hashi.Label) {
	s.note(sample, key, v, raftPairs(labels)...)
}

func raftPairs(labels []hashi.Label) []string {
	var pairs []string
	for _, label := range labels {
		pairs = append(pairs, label.Name, label.Value)
	}
	return pairs
}

// storeSink is a library as the log store's metrics package sees it, which uses
// no labels.
type storeSink struct{ *library }

var _ armon.MetricSink = storeSink{}

func (s storeSink) SetGauge(key []string, v float32)    { s.note(gauge, key, v) }
func (s storeSink) IncrCounter(key []string, v float32) { s.note(counter, key, v) }
func (s storeSink) AddSample(key []string, v float32)   { s.note(sample, key, v) }
func (storeSink) EmitKey([]string, float32)             {}

func (s storeSink) SetGaugeWithLabels(key []string, v float32, _ []armon.Label) {
	s.note(gauge, key, v)
}

func (s storeSink) IncrCounterWithLabels(key []string, v float32, _ []armon.Label) {
	s.note(counter, key, v)
}

func (s storeSink) AddSampleWithLabels(key []string, v float32, _ []armon.Label) {
	s.note(sample, key, v)
}
