package gatewayprom

import (
	"math"

	"github.com/quorlease/quorlease/client/gateway/estimate"
)

const (
	ratioName = "quorlease_gateway_estimate_ratio"
	ratioHelp = "Input tokens that a provider reported for each one that was charged, by request, " +
		"rounded up to a hundredth: above 1 the estimate was too low. 5 is 5 and more."
)

// bounds are the buckets of the ratio, in hundredths: the estimate's own bars, so that
// nothing is counted on the wrong side of one. Its last bar has no end, hence none above 400.
var bounds = [...]int{25, 50, 75, 90, 95, 98, 100, 102, 105, 110, 115, 120, 125, 150, 200, 300, 400}

// bars are those of estimate.Errors, by the ratio in hundredths, 1 to 500.
type bars [501]uint64

// tally adds up what estimates were off. An estimate.Errors forgets: from time to time each
// of its bars becomes half. A histogram must not fall, or what is asked of it takes the
// rest for news.
type tally struct {
	seen  bars
	held  int64
	total bars
	count uint64
	sum   float64
}

// add takes in the errors as they are now.
func (t *tally) add(e *estimate.Errors) {
	var now bars
	for _, b := range e.Buckets() {
		now[ratio(b.UpTo)] = uint64(b.Requests)
	}
	before := t.seen
	if e.Requests() < t.held {
		// They were halved since. What came between the last look and that moment counts half:
		// one scrape's worth in half a million.
		for i := range before {
			before[i] /= 2
		}
	}
	for i, n := range now {
		if n > before[i] {
			news := n - before[i]
			t.total[i] += news
			t.count += news
			t.sum += float64(news) * float64(i) / 100
		}
	}
	t.seen, t.held = now, e.Requests()
}

// ratio is what was reported for what was charged, in hundredths, of an error as a part of it.
func ratio(upTo float64) int {
	return min(max(int(math.Round(upTo*100))+100, 0), len(bars{})-1)
}

// cumulative are the buckets, by their bounds.
func (t *tally) cumulative() map[float64]uint64 {
	buckets := make(map[float64]uint64, len(bounds))
	var sum uint64
	next := 0
	for _, bound := range bounds {
		for ; next <= bound; next++ {
			sum += t.total[next]
		}
		buckets[float64(bound)/100] = sum
	}
	return buckets
}
