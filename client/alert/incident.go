package alert

import (
	"math/rand/v2"
	"time"
)

const (
	// firstPause and longestPause bound the wait after a delivery that failed. It
	// is drawn from the whole range below the bound, so that a thousand clients
	// whose receiver comes back don't all knock at once.
	firstPause   = 200 * time.Millisecond
	longestPause = time.Minute
	// closingPause is that bound while closing: there is little time.
	closingPause = 250 * time.Millisecond
	// triesAfterEnd is how often delivery is tried in vain once an incident is
	// over. While it is open there is no end of trying: somebody has to hear.
	triesAfterEnd = 10
)

// key names an incident.
type key struct{ kind, name, id string }

func keyOf(a Alert) key { return key{a.Kind, a.Name, a.ID} }

// incident is what one sink has been told of an incident, and what it has not.
type incident struct {
	start Alert
	// end is the resolution, where over.
	end  Alert
	over bool
	// told: the beginning was delivered. released: others go on with it once it is.
	told, released bool
	// due is when the next delivery is tried.
	due time.Time
	// failures in a row; endFailures those of them since it is over.
	failures, endFailures int
}

// pending reports whether the sink lacks something that it must hear.
func (i *incident) pending() bool { return !i.told || i.over }

// next is the alert to deliver.
func (i *incident) next() Alert {
	if i.told && i.over {
		return i.end
	}
	return i.start
}

// resolve takes the end. It is delivered at once where the beginning was, and
// after it where it was not.
func (i *incident) resolve(now time.Time, said Alert) {
	if said.Ended.Before(i.start.Started) {
		said.Ended = i.start.Started
	}
	i.end, i.over, i.due = endOf(i.start, said), true, now
}

// failed counts a failure and says whether to give up.
func (i *incident) failed(now time.Time, longest time.Duration) (givenUp bool) {
	i.failures++
	if i.over {
		i.endFailures++
	}
	i.due = now.Add(fullJitter(i.failures, longest))
	return i.endFailures >= triesAfterEnd
}

// fullJitter is the wait after so many failures in a row, at least a
// millisecond.
func fullJitter(failures int, longest time.Duration) time.Duration {
	most := longest
	if shift := failures - 1; shift < 16 {
		most = min(longest, firstPause<<shift)
	}
	return time.Millisecond + rand.N(most)
}
