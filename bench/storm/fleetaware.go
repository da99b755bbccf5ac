package storm

import (
	"time"

	"github.com/quorlease/quorlease/bench/provider"
	"github.com/quorlease/quorlease/bench/storm/authority"
	"github.com/quorlease/quorlease/client/gateway/fallback"
)

const (
	// awarePatience is how long a job waits for its lease before it thinks of another model.
	awarePatience = 20 * time.Second
	// awareShare is which part of all money may go to the fallback, in hundredths of a percent.
	awareShare = 2000
	// awareAgain is when a job comes again that neither model has done.
	awareAgain = 10 * time.Second
)

// aware is the fleet with leases, whose jobs do not wait for long: another model stands in by
// the rule of gateways and within its share, and what is left comes again.
type aware struct {
	*leased
	other provider.Model
	book  fallback.Book
	calls int
}

func newAware(seed uint64) *aware {
	a := &aware{
		leased: newLeased(seed, &Outcome{}, wideGate),
		other:  provider.NewBuckets(provider.Limits{Requests: fallbackMinute}, provider.Options{Capacity: time.Second}),
	}
	a.patience = awarePatience
	a.served = func() { a.book.Spent(a.wall(), nil, 1) }
	a.denied = a.elsewhere
	return a
}

// wall is the time of a day that has begun with the storm.
func (a *aware) wall() time.Time { return time.Unix(0, 0).Add(24*time.Hour + a.Real()) }

// elsewhere does a job that was denied with the other model, or later.
func (a *aware) elsewhere(j *job, denied authority.Answer, end func(ok bool)) {
	trouble := fallback.Trouble{
		Cause: fallback.Denied, Wait: time.Duration(denied.Denial.GetRetryAfter()), Allowed: awarePatience - denied.Waited,
	}
	later := func() { a.At(nil, awareAgain, func() { a.once(j, end) }) }
	hold, ok := a.book.Reserve(a.wall(), fallback.Bound{ShareBP: awareShare}, fallbackCost)
	switch {
	case !ok:
		later()
	case !(fallback.Manner{}).Considers(trouble) || !a.other.Ask(a.Real(), provider.Call{}).OK:
		hold.Ended(a.wall(), false)
		later()
	default:
		a.calls++
		a.At(nil, fallbackTime, func() {
			a.book.Spent(a.wall(), hold, fallbackCost)
			hold.Ended(a.wall(), true)
			end(true)
		})
	}
}

// once does a job that has come again, unless its twin was done meanwhile.
func (a *aware) once(j *job, end func(ok bool)) {
	if j.tenant == importer && a.done[j.hash] > 0 {
		end(true)
		return
	}
	a.work(j, end)
}

// fallbackAware plays it, and adds what it comes to.
func fallbackAware(seed uint64, o *Outcome) {
	a := newAware(seed)
	a.play()
	s := a.book.Stats()
	o.within(AwareCalls, float64(a.calls), 1, open)
	o.exactly(AwareUnique, len(a.done), importJobs)
	o.within(AwarePart, 100*ratio(int(s.Fallback), int(s.Fallback+s.First)), 15, awareShare/100)
	o.show(AwareDrained, a.drained.Seconds())
	o.within(AwareP95, quantile(a.waits, 0.95).Seconds(), 2, 2.1)
}
