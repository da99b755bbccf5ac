package storm

import (
	"slices"
	"time"
)

// herdBin is the width of a bin of Herd.
const herdBin = 100 * time.Millisecond

// Herd says how far retries come together: the most that fall into 100 ms, over
// the mean of all such bins from the first retry to the last. Equally spread
// retries have 1; it grows with the distance between waves. None at all have 0.
func Herd(moments []time.Duration) float64 {
	if len(moments) == 0 {
		return 0
	}
	first, last := slices.Min(moments), slices.Max(moments)
	bins := make([]int, (last-first)/herdBin+1)
	for _, at := range moments {
		bins[(at-first)/herdBin]++
	}
	return float64(slices.Max(bins)) * float64(len(bins)) / float64(len(moments))
}

// quantile is the duration that part (0 to 1) of all did not exceed: of n
// durations the ⌈n·part⌉-th. Of none it is 0.
func quantile(durations []time.Duration, part float64) time.Duration {
	if len(durations) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(durations))
	at := int(part*float64(len(sorted))+0.999999) - 1
	return sorted[min(max(at, 0), len(sorted)-1)]
}
