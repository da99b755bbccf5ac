package judge

import (
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
)

// Arrival is how an acquire came to a leader.
type Arrival struct {
	// Real is when, in real time.
	Real time.Duration
	// Node and Term say to whom.
	Node string
	Term uint64
	// MaxWait is how long it may wait, 0: not at all.
	MaxWait time.Duration
}

// queue checks G6: nothing that came later to a leader overtakes one of its class and
// client that waits there, and what may not wait overtakes nobody; who waits gets what
// its class is guaranteed; what a leader lets wait it forgets with its leadership
// (T25); what was granted to somebody who had left is given back (T26); and the time
// in the queue is added to the life of the lease (T24).
type queue struct {
	// hung: a leader has hung over a batch.
	hung  bool
	judge *Judge
	// waiting are acquires with one charge that arrived and have not left.
	waiting map[string]*waiter
	// gone are those whose caller left for good, with the term in which it did;
	// unheld those of them that were granted, and by when they have to be given back.
	gone   map[string]uint64
	unheld map[string]unheld
	// lanes are what was granted of each limit and class so far.
	lanes map[lane]int64
	// patience: the queue is judged for what a class is guaranteed.
	guaranteed map[lane]guaranteedRate
}

type lane struct{ limit, class string }

// guaranteedRate is tokens a second in hundredths of a percent, and the sub-burst.
type guaranteedRate struct{ rate, room int64 }

type unheld struct {
	by   time.Duration
	term uint64
}

// waiter is one acquire at a leader.
type waiter struct {
	Arrival
	op *logv1.Acquire
	// joined is when it was denied and began to wait, 0 while it wasn't; at is
	// authority time then, and had what its lane had been granted.
	joined time.Duration
	at     int64
	had    int64
}

// Lane watches over what a class is guaranteed while one of it waits.
func (j *Judge) Lane(limit *logv1.Limit, class string) {
	d := limit.GetDimensions()[0]
	for _, c := range limit.GetClasses() {
		if c.GetName() == class {
			j.queue.guaranteed[lane{limit.GetName(), class}] = guaranteedRate{
				d.GetAmount() * c.GetShare(), d.GetBurst() * c.GetBurst() / hundredths,
			}
		}
	}
}

// Arrived takes an acquire that came to a leader.
func (j *Judge) Arrived(a Arrival, op *logv1.Operation) {
	acquire := op.GetAcquire()
	if acquire == nil || len(acquire.GetCharges()) != 1 {
		return
	}
	id := string(acquire.GetLeaseId())
	// Whoever comes again, or comes twice, has not gone.
	delete(j.queue.gone, id)
	j.queue.waiting[id] = &waiter{Arrival: a, op: acquire}
}

// Left takes the end of a wait, or of any other call.
func (j *Judge) Left(op *logv1.Operation) {
	if acquire := op.GetAcquire(); acquire != nil {
		delete(j.queue.waiting, string(acquire.GetLeaseId()))
	}
}

// Gone takes a caller that left and does not come back.
func (j *Judge) Gone(_ time.Duration, op *logv1.Operation, term uint64) {
	if term != 0 {
		j.queue.gone[string(op.GetAcquire().GetLeaseId())] = term
	}
}

// Proposed takes what a leader proposes in a term.
func (j *Judge) Proposed(node string, term uint64, operations []*logv1.Operation) {
	for _, op := range operations {
		acquire := op.GetAcquire()
		w := j.queue.waiting[string(acquire.GetLeaseId())]
		if acquire == nil || w == nil {
			continue
		}
		if w.Node == node && w.Term != term {
			j.Complain("queue", "%s came to %s in term %d and is proposed in term %d", name(acquire.GetLeaseId()), node,
				w.Term, term)
		}
	}
}

// Moment is when and where a leader has applied something.
type Moment struct {
	Real time.Duration
	// Now is authority time.
	Now  int64
	Node string
	Term uint64
}

// Denied takes denials that a leader has applied: who may wait waits from now on.
func (j *Judge) Denied(at Moment, op *logv1.Operation, result *logv1.Result) {
	answer := result.GetAcquire()
	if answer == nil || answer.GetGranted() {
		return
	}
	w := j.queue.waiting[string(op.GetAcquire().GetLeaseId())]
	if w == nil || w.Node != at.Node || w.Term != at.Term || w.MaxWait == 0 || w.joined != 0 {
		return
	}
	w.joined, w.at, w.had = at.Real, at.Now, j.queue.lanes[w.lane()]
}

func (w *waiter) lane() lane { return lane{w.op.GetCharges()[0].GetLimit(), w.op.GetClass()} }

// giveBackWithin is how long a leader may take to give back what nobody waits for.
const giveBackWithin = 3 * time.Second

func (q *queue) take(c *Committed, op *logv1.Operation, result *logv1.Result) {
	acquire, answer := op.GetAcquire(), result.GetAcquire()
	if release := op.GetRelease(); release != nil {
		delete(q.unheld, string(release.GetLeaseId()))
	}
	if !answer.GetGranted() || answer.GetRepeated() || len(acquire.GetCharges()) != 1 {
		return
	}
	id := string(acquire.GetLeaseId())
	w := q.waiting[id]
	if w != nil && w.joined != 0 && acquire.GetHeld() == 0 {
		q.judge.Complain("held", "%s waited since %v, and its lease lives no longer for it",
			name(acquire.GetLeaseId()), w.joined)
	}
	if w != nil {
		q.overtaken(w)
		delete(q.waiting, id)
	}
	q.lanes[lane{acquire.GetCharges()[0].GetLimit(), acquire.GetClass()}] += acquire.GetCharges()[0].GetAmount()
	if term, gone := q.gone[id]; gone && term == c.Term {
		q.unheld[id] = unheld{c.Real + giveBackWithin, c.Term}
	}
}

// overtaken looks for whoever should have been granted before w.
func (q *queue) overtaken(w *waiter) {
	// The order does not matter: any one is too many.
	for _, other := range q.waiting {
		if other == w || other.joined == 0 || other.lane() != w.lane() || other.Node != w.Node || other.Term != w.Term ||
			other.op.GetCharges()[0].GetKey() != w.op.GetCharges()[0].GetKey() || other.joined >= w.Real {
			continue
		}
		if w.MaxWait == 0 || other.op.GetClient() == w.op.GetClient() {
			q.judge.Complain("G6", "%s, which came at %v, overtakes %s, which waits since %v", name(w.op.GetLeaseId()), w.Real,
				name(other.op.GetLeaseId()), other.joined)
		}
	}
}

// starveSlack is how long a leader may take over what is due.
const starveSlack = 3

// look checks, at each entry, what should have happened by now.
func (q *queue) look(c *Committed, patient bool) {
	for id, u := range q.unheld {
		switch {
		case u.term != c.Term:
			delete(q.unheld, id)
		case patient && c.Stamp.Real > u.by:
			q.judge.Complain("abandoned", "%s was granted to nobody and is not given back", name([]byte(id)))
		}
	}
	if !patient || q.hung || len(q.guaranteed) == 0 {
		return
	}
	for _, w := range q.waiting {
		if w.joined == 0 || w.Term != c.Term {
			continue
		}
		g, judged := q.guaranteed[w.lane()]
		if !judged {
			continue
		}
		// What flowed in for the class since it waits, less what the class took.
		inflow := g.rate * ((int64(c.Now) - w.at) / int64(time.Millisecond)) / hundredths / 1000
		taken := q.lanes[w.lane()] - w.had
		if need := w.op.GetCharges()[0].GetAmount() + g.room; inflow-taken > need+g.rate*starveSlack/hundredths {
			q.judge.Complain("G6", "%s waits since %v for %d tokens, its class was guaranteed %d meanwhile and had %d",
				name(w.op.GetLeaseId()), w.joined, w.op.GetCharges()[0].GetAmount(), inflow, taken)
		}
	}
}

// Patient says whether leaders hand entries over without hanging, so that who waits
// has to be served in time.
func (j *Judge) Patient(patient bool) { j.patient = patient }

// Hung notes that a leader hangs over a batch: who waits there may have to wait for it.
func (j *Judge) Hung() { j.queue.hung = true }
