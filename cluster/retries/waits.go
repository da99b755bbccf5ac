package retries

import (
	"strings"
	"sync"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
)

// waitsMax bounds the waits that are remembered, by default.
const waitsMax = 16_384

// Waits remembers who was told to wait for what, to see whether they do. It is
// safe for concurrent use.
//
// A wait is of one client for one limit and key, because that is what a denial
// is about: work for another limit does not come early, and a denial for a key
// that is used up says nothing of the next one. The processes of one client are
// one: they spend the same bucket, and one that asks while another was told to
// wait does come early for it.
type Waits struct {
	most int

	mu    sync.Mutex
	until map[wait]time.Duration
	// swept is when what is over was last looked for.
	swept time.Duration
}

// wait is what somebody waits for. A wait for the retry budget names no limit.
type wait struct{ client, limit, key string }

// NewWaits returns a memory of at most most waits; 0: 16,384.
func NewWaits(most int) *Waits {
	if most <= 0 {
		most = waitsMax
	}
	return &Waits{most: most, until: make(map[wait]time.Duration)}
}

// Early says whether an acquire comes before a wait of its client for one of its
// charges was over, and forgets those waits: each is kept or broken once.
func (w *Waits) Early(at time.Duration, acquire *logv1.Acquire) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.until) == 0 {
		return false
	}
	early := w.endLocked(at, wait{client: acquire.GetClient()})
	for _, c := range acquire.GetCharges() {
		if w.endLocked(at, wait{acquire.GetClient(), c.GetLimit(), c.GetKey()}) {
			early = true
		}
	}
	return early
}

func (w *Waits) endLocked(at time.Duration, which wait) bool {
	until, told := w.until[which]
	if told {
		delete(w.until, which)
	}
	return told && at < until
}

// Tell remembers the waits of a denied acquire and says whether there are any.
// Where there is no room for them they are not looked after.
func (w *Waits) Tell(at time.Duration, client string, denials []*logv1.Denial) bool {
	told := false
	for _, d := range denials {
		if d.GetRetryAfter() <= 0 {
			continue
		}
		told = true
		w.remember(at, wait{client, d.GetLimit(), d.GetKey()}, at+time.Duration(d.GetRetryAfter()))
	}
	return told
}

func (w *Waits) remember(at time.Duration, which wait, until time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, there := w.until[which]; !there {
		if len(w.until) >= w.most {
			w.sweepLocked(at)
		}
		if len(w.until) >= w.most {
			return
		}
		// The names may be parts of a whole message.
		which = wait{strings.Clone(which.client), strings.Clone(which.limit), strings.Clone(which.key)}
	}
	w.until[which] = until
}

// sweepLocked forgets waits that are over, once a second at most: a stream of new
// names must not walk through all of them each time.
func (w *Waits) sweepLocked(at time.Duration) {
	if w.swept > 0 && at-w.swept < time.Second {
		return
	}
	w.swept = at
	for which, until := range w.until {
		if until <= at {
			delete(w.until, which)
		}
	}
}
