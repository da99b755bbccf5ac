package witness

import (
	"fmt"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/bench/sim/rules"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// settledFor is when every bucket is full and every debt paid, if nobody asks.
const settledFor = 10 * time.Minute

// never is the id of a lease that nobody has.
var never = []byte("never-acquired-1")

// Freed checks that nothing is held any more.
func (v *Witness) Freed() {
	r := v.Replica
	in, err := r.Inspect(r.Now(), rules.Gate, "")
	if err != nil {
		v.judge.Complain("model", "%v", err)
		return
	}
	if open, counted := in.Buckets[0].Open, v.judge.InUse(rules.Gate); open != 0 || counted != 0 {
		v.judge.Complain("slots", "%d slots are in use when nobody holds any, and %d by what was granted", open, counted)
	}
}

// Paid checks that debts are paid, also those of a class to which nothing is
// guaranteed, when nobody else uses what is (T18).
func (v *Witness) Paid(limit *logv1.Limit, key string) {
	r := v.Replica
	in, err := r.Inspect(r.Now()+bucket.Instant(settledFor), limit.GetName(), key)
	if err != nil {
		v.judge.Complain("model", "%v", err)
		return
	}
	for _, b := range in.Buckets {
		if b.Amount > 0 && (b.Debt > 0 || b.Level < b.Burst) {
			v.judge.Complain("debts", "%v after the last request %s/%s has %d of %d tokens and owes %d",
				settledFor, limit.GetName(), key, b.Level, b.Burst, b.Debt)
		}
	}
}

// Served checks that what a class can ever have it has when nobody else asks, and
// that more is refused at once, for ever (G6, T19, T21).
func (v *Witness) Served(limit *logv1.Limit, key string) {
	names := []string{""}
	if classes := limit.GetClasses(); len(classes) > 0 {
		names = names[:0]
		for _, c := range classes {
			names = append(names, c.GetName())
		}
	}
	for _, d := range v.Replica.Limit(limit.GetName()).GetDimensions() {
		for _, name := range names {
			most := rules.Own(limit, d.GetBurst(), name)
			what := fmt.Sprintf("%s/%s:%s of class %q", limit.GetName(), key, d.GetName(), name)
			ask := func(n int64) *logv1.AcquireResult {
				r := v.Replica
				answer, err := r.Peek(r.Now()+bucket.Instant(settledFor), &logv1.Acquire{
					LeaseId: never, Track: true, Class: name, Charges: rules.Charges(limit.GetName(), key, d.GetName(), n),
				})
				if err != nil {
					v.judge.Complain("model", "%s: %v", what, err)
				}
				return answer
			}
			if answer := ask(most); !answer.GetGranted() {
				v.judge.Complain("G6", "%s: %d tokens are never granted: %v", what, most, answer)
			}
			denials := ask(most + 1).GetDenials()
			if len(denials) != 1 || denials[0].GetReason() != logv1.Reason_REASON_EXCEEDS_BURST {
				v.judge.Complain("G6", "%s: %d tokens are not refused for good: %v", what, most+1, denials)
			}
		}
	}
}
