package stat

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The range of a histogram: as long as a run and a call of it may last together.
// What takes longer counts as that.
const (
	shortest = int64(time.Microsecond)
	longest  = int64(2 * time.Hour)
	digits   = 3
)

// Latencies is a histogram of durations, exact to three digits from 1 us to two
// hours. It takes some 200 kB. Recording is safe for concurrent use.
type Latencies struct {
	mu        sync.Mutex
	histogram *hdrhistogram.Histogram
}

// NewLatencies returns an empty histogram.
func NewLatencies() *Latencies {
	return &Latencies{histogram: hdrhistogram.New(shortest, longest, digits)}
}

// Record counts one duration; one that is out of range counts as the nearest
// that is in it.
func (l *Latencies) Record(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// In range, so that there is no error.
	_ = l.histogram.RecordValue(min(max(int64(d), shortest), longest))
}

// Add counts what another histogram has counted.
func (l *Latencies) Add(other *Latencies) { l.histogram.Merge(other.histogram) }

// Count is how many durations there are.
func (l *Latencies) Count() int64 { return l.histogram.TotalCount() }

// At is the duration that percent of all did not exceed, 0 to 100. Of none it is
// 0.
func (l *Latencies) At(percent float64) time.Duration {
	return time.Duration(l.histogram.ValueAtQuantile(percent))
}

// Max is the longest.
func (l *Latencies) Max() time.Duration { return time.Duration(l.histogram.Max()) }
