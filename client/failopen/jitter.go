package failopen

import (
	"math"
	"math/rand/v2"
	"time"
)

// Jitter is how long to wait after a denial that said hint: from hint to a tenth
// more, spread evenly, never less. Clients that were told the same time come
// back over a tenth of it instead of in one instant, and none of them too early
// to be granted. A hint of 0 or less is 0.
func Jitter(hint time.Duration) time.Duration {
	if hint <= 0 {
		return 0
	}
	extra := time.Duration(rand.Int64N(int64(hint/10) + 1))
	if extra > math.MaxInt64-hint {
		return math.MaxInt64
	}
	return hint + extra
}
