package charge

import (
	"math"
	"time"
)

// slots is the dimension of limits of concurrency: they have no other, and what is taken
// of it has to be given back. A rate that is called so is charged rightly too, only never
// from blocks.
const slots = "slots"

// amountMax is the most that one permit may be for, where that fits an int.
const amountMax = min(1<<53, math.MaxInt)

// Work is a call before it is sent. Its maps are read until Take returns, and not kept.
type Work struct {
	// Client is whose retry budget it is under, and Class its priority. Empty: the
	// authority's client, and the first class of each limit.
	Client, Class string
	// Attempt is how many retries were made for this piece of work before, 0 first.
	Attempt uint32
	// Again: it is a further try of a call that was counted, made by the gateway itself. The
	// client's retry budget does not count it: the client has done nothing.
	Again bool
	// Attributes say what it is, and so which limits it is charged (client.Request).
	Attributes map[string]string
	// Amounts are tokens by dimension, each 1 to 2^53. Of one that is not named it is 1.
	Amounts map[string]int64
	// MaxWait is how long it may wait in the authority's queue, up to 1 h. 0: not at all.
	MaxWait time.Duration
}

// amount is what the work takes of a dimension that it is charged for.
func (w *Work) amount(dimension string) int64 {
	if n, named := w.Amounts[dimension]; named {
		return n
	}
	return 1
}

// isFor says whether the plan is for such work, whatever its amounts.
func (p *plan) isFor(w *Work) bool {
	if p.client != w.Client || p.class != w.Class ||
		len(p.attributes) != len(w.Attributes) || len(p.amounts) != len(w.Amounts) {
		return false
	}
	for name, value := range p.attributes {
		if got, ok := w.Attributes[name]; !ok || got != value {
			return false
		}
	}
	for _, name := range p.amounts {
		if _, ok := w.Amounts[name]; !ok {
			return false
		}
	}
	return true
}
