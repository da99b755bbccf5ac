// Package metrics keeps a node's own figures and hands them to Prometheus, with
// those of raft and its log store.
package metrics

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	armon "github.com/armon/go-metrics"
	hashi "github.com/hashicorp/go-metrics"
	"github.com/prometheus/client_golang/prometheus"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
)

// Set is the node's own figures. It counts whether or not anybody
// registered it. Safe for concurrent use, but for Gauge, Counter and Register.
type Set struct {
	decisions  *prometheus.CounterVec
	seconds    *prometheus.HistogramVec
	entries    prometheus.Counter
	operations prometheus.Histogram
	commit     prometheus.Histogram
	apply      prometheus.Histogram
	pause      prometheus.Histogram
	leader     prometheus.Gauge
	// warnings counts what limits that don't enforce would have refused.
	warnings *prometheus.CounterVec
	// wouldRefuse counts by retry budget, whose names are an operator's.
	wouldRefuse *prometheus.CounterVec
	attempts    attempts

	// known are the limits: the only names that become labels.
	known atomic.Pointer[map[string]*grants]
	// bySource are those of seconds.
	bySource [sources]prometheus.Observer

	registerer prometheus.Registerer
	collectors []prometheus.Collector
}

// New returns a set at zero.
func New() *Set {
	// A commit takes from a third of a millisecond to seconds on a failing disk.
	buckets := prometheus.ExponentialBuckets(0.0001, 2, 18)
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
	}
	m := &Set{
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quorlease_decisions_total",
			Help: "Acquires decided, by the first charge's limit and class and, where denied, the first reason.",
		}, []string{"limit", "class", "decision", "reason", "source"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "quorlease_decision_seconds",
			Help:    "Time from an acquire's arrival at this node to its decision.",
			Buckets: buckets,
		}, []string{"source"}),
		entries: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quorlease_log_entries_total", Help: "Log entries applied by this node.",
		}),
		operations: histogram("quorlease_entry_operations", "Operations in one log entry.",
			prometheus.ExponentialBuckets(1, 2, 10)),
		commit: histogram("quorlease_commit_seconds", "Time from proposing an entry to its result.", buckets),
		apply:  histogram("quorlease_apply_seconds", "Time to apply one entry.", prometheus.ExponentialBuckets(1e-6, 4, 12)),
		pause:  histogram("quorlease_snapshot_pause_seconds", "Time for which a snapshot stops applying.", buckets),
		leader: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "quorlease_is_leader", Help: "1 while this node serves as the leader.",
		}),
	}
	for source, name := range sourceNames {
		m.bySource[source] = m.seconds.WithLabelValues(name)
	}
	m.wouldRefuse, m.warnings, m.attempts = newWouldRefuse(), newWarnings(), newAttempts()
	m.collectors = []prometheus.Collector{
		m.decisions, m.seconds, m.entries, m.operations, m.commit, m.apply, m.pause, m.leader, m.wouldRefuse, m.warnings,
		m.attempts.all, m.attempts.throttled,
	}
	return m
}

// Gauge adds a figure that is read when somebody asks.
func (m *Set) Gauge(name, help string, read func() float64) {
	m.collectors = append(m.collectors, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, read))
}

// Counter adds a count that is read when somebody asks.
func (m *Set) Counter(name, help string, read func() uint64) {
	m.collectors = append(m.collectors, prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help},
		func() float64 { return float64(read()) }))
}

// Register hands everything to r, raft's and the log store's own figures too.
func (m *Set) Register(r prometheus.Registerer) error {
	if r == nil {
		return nil
	}
	m.registerer = r
	for i, c := range m.collectors {
		if err := r.Register(c); err != nil {
			m.collectors = m.collectors[:i]
			m.Unregister()
			return fmt.Errorf("register metrics: %w", err)
		}
	}
	sinks, err := registerLibraries(r)
	m.collectors = append(m.collectors, sinks...)
	owner.Store(m)
	if err != nil {
		m.Unregister()
		return fmt.Errorf("register raft's metrics: %w", err)
	}
	return nil
}

// Unregister takes everything back.
func (m *Set) Unregister() {
	if m.registerer == nil {
		return
	}
	for _, c := range m.collectors {
		m.registerer.Unregister(c)
	}
	if owner.CompareAndSwap(m, nil) {
		// Nobody reads the sinks any more, so nothing should fill them.
		_ = pointLibraries(&hashi.BlackholeSink{}, &armon.BlackholeSink{})
	}
}

// owner is the set whose registerer the libraries' global sinks fill.
var owner atomic.Pointer[Set]

// registerLibraries points the two metrics libraries, raft's and that of its
// log store, at r. Both keep one global sink.
func registerLibraries(r prometheus.Registerer) ([]prometheus.Collector, error) {
	raft, store := newLibrary("quorlease_raft_sink"), newLibrary("quorlease_raft_boltdb_sink")
	if err := r.Register(raft); err != nil {
		return nil, err
	}
	if err := r.Register(store); err != nil {
		return []prometheus.Collector{raft}, err
	}
	return []prometheus.Collector{raft, store}, pointLibraries(raftSink{raft}, storeSink{store})
}

// pointLibraries replaces both global sinks.
func pointLibraries(raftSink hashi.MetricSink, boltSink armon.MetricSink) error {
	hc := hashi.DefaultConfig("quorlease")
	hc.EnableHostname, hc.EnableRuntimeMetrics = false, false
	_, hashiErr := hashi.NewGlobal(hc, raftSink)
	ac := armon.DefaultConfig("quorlease")
	ac.EnableHostname, ac.EnableRuntimeMetrics = false, false
	_, armonErr := armon.NewGlobal(ac, boltSink)
	return errors.Join(hashiErr, armonErr)
}

// Proposed counts an entry that was proposed, and how long its result took.
func (m *Set) Proposed(operations int, took time.Duration) {
	m.operations.Observe(float64(operations))
	m.commit.Observe(took.Seconds())
}

// Applied counts an entry that was applied.
func (m *Set) Applied(took time.Duration) {
	m.entries.Inc()
	m.apply.Observe(took.Seconds())
}

// SnapshotPause counts how long a snapshot stopped applying.
func (m *Set) SnapshotPause(took time.Duration) { m.pause.Observe(took.Seconds()) }

// Leads says whether this node serves as the leader.
func (m *Set) Leads(yes bool) {
	value := 0.0
	if yes {
		value = 1
	}
	m.leader.Set(value)
}

// Configure says which limits there are. No other name becomes a label, nor does
// a class that its limit doesn't have: what clients send must not grow the list
// of series (G10). The series of a limit that has gone go with it.
func (m *Set) Configure(limits []*logv1.Limit) {
	known := make(map[string]*grants, len(limits))
	for _, limit := range limits {
		known[limit.GetName()] = newGrants(limit)
	}
	before := m.known.Swap(&known)
	if before == nil {
		return
	}
	for name := range *before {
		if _, still := known[name]; !still {
			m.decisions.DeletePartialMatch(prometheus.Labels{"limit": name})
			m.warnings.DeletePartialMatch(prometheus.Labels{"limit": name})
		}
	}
}

// Decided counts the answer to an acquire that entered here.
func (m *Set) Decided(op *logv1.Acquire, result *logv1.AcquireResult, took time.Duration) {
	limit, decision, reason, source := "", "granted", "", sourceOf(result)
	if charges := op.GetCharges(); len(charges) > 0 {
		limit = charges[0].GetLimit()
	}
	if !result.GetGranted() {
		decision = "denied"
		if denials := result.GetDenials(); len(denials) > 0 {
			first := denials[0]
			reason = reasonLabels[first.GetReason()]
			if first.GetLimit() != "" {
				limit = first.GetLimit()
			}
		}
	}
	m.bySource[source].Observe(took.Seconds())
	if decision == "granted" {
		m.grant(limit, op.GetClass(), source)
	} else {
		limit, class := m.labels(limit, op.GetClass())
		m.decisions.WithLabelValues(limit, class, decision, reason, sourceNames[source]).Inc()
	}
	m.attempts.granted(result)
	for _, w := range result.GetWarnings() {
		name, _ := m.labels(w.GetLimit(), "")
		m.warnings.WithLabelValues(name, reasonLabels[w.GetReason()]).Inc()
	}
}

// labels are the names as labels: empty where they are not an operator's.
func (m *Set) labels(limit, class string) (limitLabel, classLabel string) {
	s := m.grantsOf(limit)
	if s == nil {
		return "", ""
	}
	if i := s.class(class); i > 0 {
		return limit, class
	}
	return limit, ""
}

// reasonLabels are the reasons as labels, in lower case.
var reasonLabels = func() map[logv1.Reason]string {
	labels := make(map[logv1.Reason]string, len(logv1.Reason_name))
	for number, name := range logv1.Reason_name {
		labels[logv1.Reason(number)] = strings.ToLower(strings.TrimPrefix(name, "REASON_"))
	}
	return labels
}()
