package authority

import (
	"slices"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/queue"
)

// Ask is one acquire.
type Ask struct {
	Operation *logv1.Acquire
	// MaxWait is how long the caller would wait in the queue. 0: not at all.
	MaxWait time.Duration
	// Done is called once, when the acquire is granted or denied for good.
	Done func(Answer)
	// Queued, where set, is called when the acquire begins to wait.
	Queued func(queue.Status)

	arrived  time.Duration
	answered bool
	waiter   queue.Waiter
}

// Answer is what became of an acquire.
type Answer struct {
	Granted bool
	// Repeated says that the lease id was granted before: the work is somebody
	// else's.
	Repeated bool
	// Denial is the one that is waited for longest, with a reason. Nil where it was
	// granted.
	Denial *logv1.Denial
	// Waited is how long the answer took.
	Waited time.Duration
}

// Acquire asks. An acquire waits where the limits tell it to and somebody of its
// class does already: nothing overtakes (G6).
func (a *Authority) Acquire(ask *Ask) {
	ask.arrived = a.stage.Real()
	done := ask.Done
	ask.Done = func(answer Answer) {
		ask.answered = true
		done(answer)
	}
	a.acquire(ask)
}

func (a *Authority) acquire(ask *Ask) {
	a.remember(ask)
	if a.leaderless {
		return
	}
	now := a.stage.Real()
	for _, c := range ask.Operation.GetCharges() {
		at := queue.Place{Limit: c.GetLimit(), Key: c.GetKey()}
		if a.waiting.Busy(at, ask.Operation.GetClass()) {
			status := a.waiting.Status(now, at, ask.Operation.GetClass(), costsAt(ask.Operation, at))
			a.line(ask, &logv1.Denial{
				Reason: logv1.Reason_REASON_RATE, Limit: at.Limit, Key: at.Key,
				RetryAfter: int64(max(status.ETA, time.Millisecond)),
			})
			return
		}
	}
	a.try(ask, nil)
}

// remember keeps an ask until it is answered, and forgets those that are, now and
// then.
func (a *Authority) remember(ask *Ask) {
	if len(a.asks) == cap(a.asks) {
		a.asks = slices.DeleteFunc(a.asks, func(b *Ask) bool { return b.answered })
	}
	a.asks = append(a.asks, ask)
}

// costsAt is what an acquire asks for at one place.
func costsAt(op *logv1.Acquire, at queue.Place) (costs []queue.Cost) {
	for _, c := range op.GetCharges() {
		if c.GetLimit() == at.Limit && c.GetKey() == at.Key {
			costs = append(costs, queue.Cost{Dimension: c.GetDimension(), Tokens: c.GetAmount()})
		}
	}
	return costs
}

// try proposes an acquire, with what it has to leave to those who wait. landed,
// where set, is told what became of one from the queue.
func (a *Authority) try(ask *Ask, landed func(granted bool, wait time.Duration)) {
	now := a.stage.Real()
	op := ask.Operation
	op.Held = int64(now - ask.arrived)
	for _, c := range op.GetCharges() {
		at := queue.Place{Limit: c.GetLimit(), Key: c.GetKey()}
		c.Keep = a.waiting.Keep(now, at, op.GetClass(), c.GetDimension())
	}
	a.propose(&logv1.Operation{Kind: &logv1.Operation_Acquire{Acquire: op}}, func(r *logv1.Result) {
		result := r.GetAcquire()
		if result.GetGranted() {
			if landed != nil {
				landed(true, 0)
			}
			ask.Done(Answer{Granted: true, Repeated: result.GetRepeated(), Waited: a.stage.Real() - ask.arrived})
			return
		}
		first := result.GetDenials()[0]
		if landed != nil {
			landed(false, waitOf(first))
			return
		}
		a.line(ask, first)
	})
}

func waitOf(d *logv1.Denial) time.Duration {
	if d.GetRetryAfter() == 0 {
		return queue.Never
	}
	return time.Duration(d.GetRetryAfter())
}

// line lets a denied acquire wait, if it would and may.
func (a *Authority) line(ask *Ask, denial *logv1.Denial) {
	now := a.stage.Real()
	if ask.MaxWait == 0 || denial.GetRetryAfter() == 0 {
		ask.Done(Answer{Denial: denial, Waited: now - ask.arrived})
		return
	}
	at := queue.Place{Limit: denial.GetLimit(), Key: denial.GetKey()}
	costs := costsAt(ask.Operation, at)
	ask.waiter = queue.Waiter{
		Place: at, Class: ask.Operation.GetClass(), Client: ask.Operation.GetClient(), Costs: costs,
		Sole: len(costs) == len(ask.Operation.GetCharges()), Owner: ask,
		Arrived: ask.arrived, Until: ask.arrived + ask.MaxWait,
	}
	status, ok := a.waiting.Push(now, &ask.waiter, time.Duration(denial.GetRetryAfter()))
	if !ok {
		ask.Done(Answer{
			Denial: &logv1.Denial{Reason: logv1.Reason_REASON_QUEUE_FULL, Limit: at.Limit, Key: at.Key},
			Waited: now - ask.arrived,
		})
		return
	}
	if ask.Queued != nil {
		ask.Queued(status)
	}
	a.arm()
}

// arm looks at the queue when it wants to be looked at.
func (a *Authority) arm() {
	at, ok := a.waiting.NextDue()
	if !ok || at == queue.Never {
		return
	}
	a.turn++
	turn := a.turn
	a.stage.At(nil, at-a.stage.Real(), func() {
		if turn == a.turn {
			a.look()
		}
	})
}

// look proposes the heads that are due, and sends away who has waited enough.
func (a *Authority) look() {
	now := a.stage.Real()
	for _, w := range a.waiting.Expire(now) {
		w.Owner.(*Ask).Done(Answer{
			Denial: &logv1.Denial{
				Reason: logv1.Reason_REASON_WAIT_EXPIRED, Limit: w.Place.Limit, Key: w.Place.Key,
			},
			Waited: now - w.Arrived,
		})
	}
	for _, w := range a.waiting.Next(now) {
		a.fly(w)
	}
	a.arm()
}

func (a *Authority) fly(w *queue.Waiter) {
	a.try(w.Owner.(*Ask), func(granted bool, wait time.Duration) {
		if granted {
			a.waiting.Granted(a.stage.Real(), w)
		} else {
			a.waiting.Denied(a.stage.Real(), w, wait)
		}
		a.arm()
	})
}

// Throttled reports that a provider refused a call of a key of a limit, with its
// wait hint.
func (a *Authority) Throttled(limit, key string, wait time.Duration) {
	a.propose(&logv1.Operation{Kind: &logv1.Operation_Feedback{Feedback: &logv1.Feedback{
		Signals: []*logv1.Signal{{
			Limit: limit, Key: key, Kind: logv1.Signal_KIND_THROTTLED, Wait: int64(wait), Reason: "429",
		}},
	}}}, nil)
}

// Used is what a lease came to in one dimension.
type Used struct {
	Dimension string
	Tokens    int64
}

// Settle ends a lease with what was used. Whoever waits at its places for what
// comes back is looked at.
func (a *Authority) Settle(op *logv1.Acquire, used ...Used) {
	settle := &logv1.Settle{LeaseId: op.GetLeaseId()}
	for _, u := range used {
		settle.Used = append(settle.Used, &logv1.Usage{Dimension: u.Dimension, Used: u.Tokens})
	}
	a.propose(&logv1.Operation{Kind: &logv1.Operation_Settle{Settle: settle}}, func(*logv1.Result) {
		for _, c := range op.GetCharges() {
			a.waiting.Wake(a.stage.Real(), queue.Place{Limit: c.GetLimit(), Key: c.GetKey()})
		}
		a.arm()
	})
}
