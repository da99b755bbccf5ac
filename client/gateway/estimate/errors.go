package estimate

// The buckets of the histogram: from -100 % to +400 % of the estimate, a hundredth of
// it wide each.
const (
	bucketsLen = 500
	below      = 100
	// agedAt is how many requests are kept before each counts half: what estimates were
	// like a week ago says nothing about today's margin.
	agedAt = 1 << 20
	// EnoughRequests is from how many requests on a margin is suggested: among fewer, the
	// largest hundredth is fewer than ten.
	EnoughRequests = 1000
)

// Errors is a histogram of how far estimates were off: what was reported less what was
// estimated, in hundredths of the estimate. It is a value and may be copied.
type Errors struct {
	buckets [bucketsLen]uint32
	count   int64
	// sums of tokens, for the mean.
	estimated, reported float64
}

// Bucket is one bar of the histogram.
type Bucket struct {
	// UpTo is the largest error that counts here, as a part of the estimate: 0.25 where the
	// request used a quarter more than was estimated. The last bar has everything above.
	UpTo float64
	// Requests is how many there were.
	Requests int64
}

func (e *Errors) add(estimated, reported int64) {
	if e.count >= agedAt {
		e.age()
	}
	e.buckets[bucketOf(estimated, reported)]++
	e.count++
	e.estimated += float64(estimated)
	e.reported += float64(reported)
}

// bucketOf is the bar of an error, which is rounded up: a margin must not be too small
// for what it was made of.
func bucketOf(estimated, reported int64) int {
	// Neither is above 2^53, so that this fits.
	over, whole := (reported-estimated)*below, max(1, estimated)
	at := over / whole
	if over%whole > 0 {
		at++
	}
	return int(min(max(at+below-1, 0), bucketsLen-1))
}

func (e *Errors) age() {
	e.count = 0
	for i := range e.buckets {
		e.buckets[i] /= 2
		e.count += int64(e.buckets[i])
	}
	e.estimated /= 2
	e.reported /= 2
}

// Requests is how many are in it.
func (e *Errors) Requests() int64 { return e.count }

// Mean is the error of all of them together, as a part of what was estimated: 0.01 where
// one in a hundred tokens more was used. 0 of nothing.
func (e *Errors) Mean() float64 {
	if e.estimated <= 0 {
		return 0
	}
	return e.reported/e.estimated - 1
}

// Buckets are those bars that are not empty, in order.
func (e *Errors) Buckets() []Bucket {
	var bars []Bucket
	for i, n := range e.buckets {
		if n > 0 {
			bars = append(bars, Bucket{UpTo: upTo(i), Requests: int64(n)})
		}
	}
	return bars
}

func upTo(bucket int) float64 { return float64(bucket+1-below) / below }

// Quantile is the error that the part q of the requests, 0 to 1, does not exceed, rounded up to
// a hundredth. 0 of nothing.
func (e *Errors) Quantile(q float64) float64 {
	want := q * float64(e.count)
	var sum float64
	for i, n := range e.buckets {
		sum += float64(n)
		if n > 0 && sum >= want {
			return upTo(i)
		}
	}
	return 0
}

// Margin is which part of an estimate to keep free so that 99 of 100 requests stay within
// what was charged for them, at least 0. It is false where too few were seen to say:
// then a quarter is kept.
func (e *Errors) Margin() (part float64, ok bool) {
	if e.count < EnoughRequests {
		return 0.25, false
	}
	return max(0, e.Quantile(0.99)), true
}
