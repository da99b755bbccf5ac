package metrics_test

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/metrics"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// scraped is a registry with what a node shows of a replica, which has so many buckets.
func scraped(t testing.TB, buckets int) *prometheus.Registry {
	t.Helper()
	m := fsm.New()
	dimension := &logv1.Dimension{
		Name: "requests", Amount: 60, Interval: int64(time.Hour), Burst: 60, MaxDebt: 60, MaxOpen: 60,
	}
	limits := []*logv1.Limit{{
		Name: "keyed", Keyed: true, Target: 10_000, Lease: int64(time.Minute), MaxKeys: int64(buckets),
		Dimensions: []*logv1.Dimension{dimension},
	}}
	for i := range 300 {
		limits = append(limits, &logv1.Limit{
			Name: fmt.Sprintf("limit-%03d", i), Target: 10_000, Lease: int64(time.Minute), MaxKeys: 1,
			Dimensions: []*logv1.Dimension{dimension},
		})
	}
	index := uint64(1)
	results, _ := m.Apply(index, &logv1.Entry{Operations: []*logv1.Operation{{Kind: &logv1.Operation_ApplyLimits{
		ApplyLimits: &logv1.ApplyLimits{Limits: limits},
	}}}})
	if r := results[0].GetRefusal(); r != nil {
		t.Fatal(r)
	}
	for from := 0; from < buckets; from += 500 {
		e := &logv1.Entry{}
		for i := from; i < min(from+500, buckets); i++ {
			e.Operations = append(e.Operations, &logv1.Operation{Kind: &logv1.Operation_Acquire{Acquire: &logv1.Acquire{
				Charges: []*logv1.Charge{{Limit: "keyed", Key: fmt.Sprintf("key-%07d", i), Dimension: "requests", Amount: 1}},
			}}})
		}
		index++
		m.Apply(index, e)
	}
	if got := m.Counts().Keys; got != buckets {
		t.Fatalf("%d buckets, want %d", got, buckets)
	}
	set := metrics.New()
	set.Sizes(m.Counts)
	set.Levels(func(read func(*fsm.Machine, bucket.Instant)) { read(m, m.Now()) })
	registry := prometheus.NewRegistry()
	if err := set.Register(registry); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(set.Unregister)
	return registry
}

// scrape is what Prometheus gets, and how long that took.
func scrape(t testing.TB, registry *prometheus.Registry) (text []byte, took time.Duration) {
	t.Helper()
	recorder := httptest.NewRecorder()
	began := time.Now()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(recorder, httptest.NewRequest("GET", "/metrics", nil))
	took = time.Since(began)
	if recorder.Code != 200 {
		t.Fatal(recorder.Body)
	}
	return recorder.Body.Bytes(), took
}

// TestScrapeOfManyBuckets: what Prometheus gets depends on the limits that an operator
// wrote, and not on how many keys clients have brought into being.
func TestScrapeOfManyBuckets(t *testing.T) {
	// Not parallel: the libraries' sinks are global, and it measures.
	registry := scraped(t, 100_000)
	text, _ := scrape(t, registry)
	if n := bytes.Count(text, []byte("\n")); n > 1000 {
		t.Errorf("%d lines for a hundred thousand buckets", n)
	}
	best := time.Hour
	for range 10 {
		_, took := scrape(t, registry)
		best = min(best, took)
	}
	if best > 100*time.Millisecond {
		t.Errorf("%v, want at most 100 ms", best)
	}
}

// BenchmarkScrapeOfAMillionBuckets is the same with a million.
func BenchmarkScrapeOfAMillionBuckets(b *testing.B) {
	registry := scraped(b, 1_000_000)
	for b.Loop() {
		scrape(b, registry)
	}
}
