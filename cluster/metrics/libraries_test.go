package metrics_test

import (
	"testing"
	"time"

	armon "github.com/armon/go-metrics"
	hashi "github.com/hashicorp/go-metrics"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/quorlease/quorlease/cluster/metrics"
)

// family finds the only metric of a name and label value.
func family(t *testing.T, registry *prometheus.Registry, name, label string) *dto.Metric {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && (label == "" || m.GetLabel()[0].GetValue() == label) {
				return m
			}
		}
	}
	t.Fatalf("no %s%s", name, label)
	return nil
}

// Not parallel: the libraries' sinks are global.
func TestLibrariesAreCollected(t *testing.T) {
	registry := prometheus.NewRegistry()
	set := metrics.New()
	if err := set.Register(registry); err != nil {
		t.Fatal(err)
	}
	peer := func(name string) []hashi.Label { return []hashi.Label{{Name: "peer_id", Value: name}} }
	for _, ms := range []float32{1, 3} {
		hashi.AddSampleWithLabels([]string{"raft", "replication", "rpc"}, ms, peer("n-1"))
		hashi.AddSampleWithLabels([]string{"raft", "replication", "rpc"}, 10*ms, peer("n-2"))
		hashi.IncrCounter([]string{"raft", "a.b-c"}, ms)
		hashi.SetGauge([]string{"raft", "peers"}, ms)
		armon.AddSample([]string{"raft", "boltdb", "logSize"}, ms)
		armon.IncrCounter([]string{"raft", "boltdb", "writes"}, ms)
		armon.SetGauge([]string{"raft", "boltdb", "pages"}, ms)
	}
	hashi.MeasureSince([]string{"raft", "apply"}, time.Now())
	for name, want := range map[string]float64{"n-1": 4, "n-2": 40} {
		s := family(t, registry, "quorlease_raft_replication_rpc", name).GetSummary()
		if s.GetSampleCount() != 2 || s.GetSampleSum() != want {
			t.Errorf("peer %s: %v, want 2 samples, %v in all", name, s, want)
		}
	}
	if got := family(t, registry, "quorlease_raft_a_b_c", "").GetCounter().GetValue(); got != 4 {
		t.Errorf("counter is %v, want 4", got)
	}
	if got := family(t, registry, "quorlease_raft_peers", "").GetGauge().GetValue(); got != 3 {
		t.Errorf("gauge is %v, want the last value 3", got)
	}
	if got := family(t, registry, "quorlease_raft_boltdb_logSize", "").GetSummary().GetSampleSum(); got != 4 {
		t.Errorf("the log store's sample is %v, want 4", got)
	}
	if got := family(t, registry, "quorlease_raft_boltdb_pages", "").GetGauge().GetValue(); got != 3 {
		t.Errorf("the log store's gauge is %v, want 3", got)
	}
	set.Unregister()
	if families, err := registry.Gather(); err != nil || len(families) != 0 {
		t.Errorf("%d families after unregistering, %v", len(families), err)
	}
}
