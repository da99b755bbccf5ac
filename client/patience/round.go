package patience

import (
	"sync/atomic"
	"time"
)

const (
	// meanPart and deviationPart are how much of each answer goes into the mean and its
	// deviation: a 64th and a 32nd, so that some dozens of answers count. RFC 6298 has an
	// 8th and a quarter for answers that come one after the other.
	meanPart, deviationPart = 64, 32
	// deviations is how many of them an answer may be late (RFC 6298).
	deviations = 4
)

// Round is how long answers take, and with that for how long to wait for one before
// another node is asked: the mean and four deviations, as TCP waits for an
// acknowledgement (RFC 6298). The zero value is ready. It takes no lock and is safe for
// concurrent use; of two answers at the same moment one may not count.
type Round struct{ mean, deviation atomic.Int64 }

// Note takes in an answer that took so long.
func (r *Round) Note(took time.Duration) {
	mean := r.mean.Load()
	if mean == 0 {
		r.mean.Store(max(1, int64(took)))
		r.deviation.Store(int64(took) / 2)
		return
	}
	off := int64(took) - mean
	r.mean.Store(max(1, mean+off/meanPart))
	deviation := r.deviation.Load()
	r.deviation.Store(deviation + (max(off, -off)-deviation)/deviationPart)
}

// Wait is for how long to wait, within bounds: most as long as nothing is known.
func (r *Round) Wait(least, most time.Duration) time.Duration {
	mean := r.mean.Load()
	if mean == 0 {
		return most
	}
	return min(most, max(least, time.Duration(mean+deviations*r.deviation.Load())))
}
