package metrics_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/metrics"
	"github.com/quorlease/quorlease/cluster/queue"
)

// value is a counter or gauge with these labels, -1 where there is none.
func value(t *testing.T, registry *prometheus.Registry, name string, labels map[string]string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
	metrics:
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				if want, ok := labels[l.GetName()]; ok && want != l.GetValue() {
					continue metrics
				}
			}
			return m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return -1
}

// Not parallel: the libraries' sinks are global.
func TestSet(t *testing.T) {
	registry := prometheus.NewRegistry()
	set := metrics.New()
	set.Gauge("quorlease_test", "A figure.", func() float64 { return 42 })
	set.Queues(func() []queue.Depth {
		return []queue.Depth{{Limit: "gpt", Class: "live", Waiting: 7, Oldest: 1500 * time.Millisecond}}
	})
	if err := set.Register(registry); err != nil {
		t.Fatal(err)
	}
	set.Configure([]*logv1.Limit{{Name: "gpt", Classes: []*logv1.Class{{Name: "live"}}}, {Name: "other"}})
	acquire := &logv1.Acquire{Class: "live", Charges: []*logv1.Charge{{Limit: "gpt"}, {Limit: "other"}}}
	set.Decided(acquire, &logv1.AcquireResult{Granted: true}, time.Millisecond)
	set.Decided(acquire, &logv1.AcquireResult{Denials: []*logv1.Denial{
		{Reason: logv1.Reason_REASON_RATE, Limit: "other"}, {Reason: logv1.Reason_REASON_DEBT, Limit: "gpt"},
	}}, time.Millisecond)
	set.Decided(acquire, &logv1.AcquireResult{Denials: []*logv1.Denial{
		{Reason: logv1.Reason_REASON_RETRY_BUDGET},
	}}, time.Millisecond)
	set.Decided(acquire, &logv1.AcquireResult{Granted: true, Warnings: []*logv1.Denial{
		{Reason: logv1.Reason_REASON_CONCURRENCY, Limit: "other"}, {Reason: logv1.Reason_REASON_RATE, Limit: "a client's"},
	}}, time.Millisecond)
	set.Leads(true)
	set.Applied(time.Microsecond)
	const decisions = "quorlease_decisions_total"
	for _, c := range []struct {
		name   string
		labels map[string]string
		want   float64
	}{
		{decisions, map[string]string{"limit": "gpt", "decision": "granted", "class": "live", "reason": ""}, 2},
		{decisions, map[string]string{"limit": "other", "decision": "denied", "reason": "rate"}, 1},
		{decisions, map[string]string{"limit": "gpt", "decision": "denied", "reason": "retry_budget", "source": ""}, 1},
		{decisions, map[string]string{"limit": "other", "class": "live"}, -1},
		{"quorlease_limit_would_refuse_total", map[string]string{"limit": "other", "reason": "concurrency"}, 1},
		{"quorlease_limit_would_refuse_total", map[string]string{"limit": "", "reason": "rate"}, 1},
		{"quorlease_is_leader", nil, 1},
		{"quorlease_log_entries_total", nil, 1},
		{"quorlease_test", nil, 42},
		{"quorlease_queue_depth", map[string]string{"limit": "gpt", "class": "live"}, 7},
		{"quorlease_queue_oldest_seconds", map[string]string{"limit": "gpt", "class": "live"}, 1.5},
	} {
		if got := value(t, registry, c.name, c.labels); got != c.want {
			t.Errorf("%s%v is %v, want %v", c.name, c.labels, got, c.want)
		}
	}
	if err := metrics.New().Register(registry); err == nil {
		t.Error("two nodes at one registerer were accepted")
	}
	set.Unregister()
	if err := metrics.New().Register(registry); err != nil {
		t.Errorf("not free after unregistering: %v", err)
	}
}
