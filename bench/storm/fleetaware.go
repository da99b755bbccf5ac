package storm

import (
	"time"

	"github.com/quorlease/quorlease/bench/provider"
	"github.com/quorlease/quorlease/bench/storm/authority"
	"github.com/quorlease/quorlease/client/gateway/fallback"
)

const (
	// awarePatience is how long a job waits for its lease before it thinks of another model, and
	// awareAgain when it comes again that neither has done.
	awarePatience, awareAgain = 20 * time.Second, 10 * time.Second
	// awareShare is which part of all money may go to the fallback, in hundredths of a percent.
	awareShare = 2000
)

// fallbackAware plays the fleet with leases whose jobs do not wait for long: another model
// stands in by the rule of gateways and within its share, and what is left comes again.
func fallbackAware(seed uint64, o *Outcome) {
	a, book := newLeased(seed, &Outcome{}, wideGate), fallback.Book{}
	other := provider.NewBuckets(provider.Limits{Requests: fallbackMinute}, provider.Options{Capacity: time.Second})
	wall := func() time.Time { return time.Unix(0, 0).Add(24*time.Hour + a.Real()) }
	a.patience = awarePatience
	a.served = func() { book.Spent(wall(), nil, 1) }
	a.denied = func(j *job, no authority.Answer, end func(ok bool)) {
		t := fallback.Trouble{Cause: fallback.Denied, Wait: time.Duration(no.Denial.GetRetryAfter())}
		t.Allowed = awarePatience - no.Waited
		hold, ok := book.Reserve(wall(), fallback.Bound{ShareBP: awareShare}, fallbackCost)
		if !ok || !(fallback.Manner{}).Considers(t) || !other.Ask(a.Real(), provider.Call{}).OK {
			book.Spent(wall(), hold, 0)
			a.At(nil, awareAgain, func() { a.work(j, end) })
			return
		}
		a.At(nil, fallbackTime, func() {
			book.Spent(wall(), hold, fallbackCost)
			end(true)
		})
	}
	a.play()
	s := book.Stats()
	o.within(AwarePart, 100*ratio(int(s.Fallback), int(s.Fallback+s.First)), 15, awareShare/100)
	o.within(AwareP95, quantile(a.waits, 0.95).Seconds(), 2, 2.1)
}
