package charge

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// oversMax is how many clients are known to be over their budget at once. Of further ones
// the first attempts pass here, as they do for whoever spends permits.
const oversMax = 1024

// overs are the clients whom the authority has refused for their retry budget: until when
// their calls ask it, each one, also those that could be paid from what is held. A budget
// may refuse everything of a client, and is that of all gateways together; what one of
// them counts by itself refuses retries only. It is safe for concurrent use.
type overs struct {
	n  atomic.Int64
	mu sync.Mutex
	// until is by client.
	until map[string]time.Duration
}

func newOvers() *overs { return &overs{until: make(map[string]time.Duration)} }

// has says whether a client's calls ask. It takes no lock where nobody's do.
func (o *overs) has(now time.Duration, client string) bool {
	if o.n.Load() == 0 {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	until, ok := o.until[client]
	if ok && now >= until {
		o.dropLocked(client)
		return false
	}
	return ok
}

// add notes that a client was refused.
func (o *overs) add(client string, until time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, ok := o.until[client]; !ok && len(o.until) >= oversMax {
		for other := range o.until {
			o.dropLocked(other)
			break
		}
	}
	o.until[strings.Clone(client)] = until
	o.n.Store(int64(len(o.until)))
}

// drop notes that a client was granted something.
func (o *overs) drop(client string) {
	if o.n.Load() == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.dropLocked(client)
}

func (o *overs) dropLocked(client string) {
	delete(o.until, client)
	o.n.Store(int64(len(o.until)))
}
