package sim

import (
	"fmt"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// settledFor is when every bucket is full and every debt paid, if nobody asks.
const settledFor = 10 * time.Minute

// settled checks what must be so in the end.
func (w *World) settled() {
	for _, n := range w.nodes {
		switch {
		case n.replica.Index()+lagMost < w.last:
			w.judge.Complain("liveness", "%s has applied %d of %d", n.host.Name, n.replica.Index(), w.last)
		case n.replica.Hash() != n.replica.Recount():
			w.judge.Complain("G9", "the hash of %s is %016x, the recount %016x", n.host.Name, n.replica.Hash(),
				n.replica.Recount())
		}
	}
	for _, c := range w.clients {
		if c.fallback.machine.Away() {
			w.judge.Complain("liveness", "%s decides by itself %v after the faults", c.name, quietFor)
		}
	}
	w.judge.Reported()
	if w.storm != nil && w.judge.Exhausted() < w.stage.Real()-quietFor+budgetWindow {
		w.judge.Complain("G12", "the nodes' parts used up less than the rule leaves, all the time")
	}
	w.wholeAgain()
	w.freed()
	for _, l := range w.limits {
		if l.GetUnlimited() {
			continue
		}
		keys := []string{""}
		if l.GetKeyed() {
			keys = []string{"k0", "k1", "k2", "never seen"}
		}
		for _, key := range keys {
			w.paid(l, key)
			w.served(l, key)
		}
	}
}

// never is the id of a lease that nobody has.
var never = []byte("never-acquired-1")

// freed checks that nothing is held any more.
func (w *World) freed() {
	r := w.witness.replica
	in, err := r.Inspect(r.Now(), gateLimit, "")
	if err != nil {
		w.judge.Complain("model", "%v", err)
		return
	}
	if open, counted := in.Buckets[0].Open, w.judge.InUse(gateLimit); open != 0 || counted != 0 {
		w.judge.Complain("slots", "%d slots are in use when nobody holds any, and %d by what was granted", open, counted)
	}
}

// paid checks that debts are paid, also those of a class to which nothing is
// guaranteed, when nobody else uses what is (T18).
func (w *World) paid(limit *logv1.Limit, key string) {
	r := w.witness.replica
	in, err := r.Inspect(r.Now()+bucket.Instant(settledFor), limit.GetName(), key)
	if err != nil {
		w.judge.Complain("model", "%v", err)
		return
	}
	for _, b := range in.Buckets {
		if b.Amount > 0 && (b.Debt > 0 || b.Level < b.Burst) {
			w.judge.Complain("debts", "%v after the last request %s/%s has %d of %d tokens and owes %d",
				settledFor, limit.GetName(), key, b.Level, b.Burst, b.Debt)
		}
	}
}

// served checks that what a class can ever have it has when nobody else asks, and
// that more is refused at once, for ever (G6, T19, T21).
func (w *World) served(limit *logv1.Limit, key string) {
	names := []string{""}
	if classes := limit.GetClasses(); len(classes) > 0 {
		names = names[:0]
		for _, c := range classes {
			names = append(names, c.GetName())
		}
	}
	for _, d := range w.witness.replica.Limit(limit.GetName()).GetDimensions() {
		for _, name := range names {
			most := own(limit, d.GetBurst(), name)
			what := fmt.Sprintf("%s/%s:%s of class %q", limit.GetName(), key, d.GetName(), name)
			ask := func(n int64) *logv1.AcquireResult {
				r := w.witness.replica
				answer, err := r.Peek(r.Now()+bucket.Instant(settledFor), &logv1.Acquire{
					LeaseId: never, Track: true, Class: name, Charges: charges(limit.GetName(), key, d.GetName(), n),
				})
				if err != nil {
					w.judge.Complain("model", "%s: %v", what, err)
				}
				return answer
			}
			if answer := ask(most); !answer.GetGranted() {
				w.judge.Complain("G6", "%s: %d tokens are never granted: %v", what, most, answer)
			}
			denials := ask(most + 1).GetDenials()
			if len(denials) != 1 || denials[0].GetReason() != logv1.Reason_REASON_EXCEEDS_BURST {
				w.judge.Complain("G6", "%s: %d tokens are not refused for good: %v", what, most+1, denials)
			}
		}
	}
}

// own is what a class can ever have of a burst: all but the parts of the others.
func own(limit *logv1.Limit, burst int64, class string) int64 {
	most := burst
	for _, other := range limit.GetClasses() {
		if other.GetName() != class {
			most -= burst * other.GetBurst() / bucket.Whole
		}
	}
	return most
}
