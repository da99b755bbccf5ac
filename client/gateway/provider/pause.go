package provider

import "time"

const (
	// pauseExtra is over how long those who were told the same wait come back.
	pauseExtra = 2 * time.Second
	// pauseFirst is the longest pause before the first retry of what was told nothing;
	// each further one is twice as long, to pauseMax.
	pauseFirst = time.Second
	pauseMax   = time.Minute
)

// Pause is how long to wait before the same request may be sent again, after so
// many retries, 0 first. What the provider asks for is the least, and a random part
// of two seconds comes on top. Where it asks for nothing the pause doubles from try
// to try, up to a minute, and its second half is drawn. draw returns a number from
// 0 to below n, as rand.Int64N does.
func (w Wait) Pause(retries int, draw func(n int64) int64) time.Duration {
	if w.Said {
		return w.For + time.Duration(draw(int64(pauseExtra)))
	}
	longest := pauseFirst
	for range min(max(retries, 0), 6) {
		longest = min(2*longest, pauseMax)
	}
	return longest/2 + time.Duration(draw(int64(longest/2)+1))
}
