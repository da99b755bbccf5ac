package retries

import (
	"crypto/rand"
	"encoding/binary"
	"sync"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/warn"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/retry"
	"github.com/quorlease/quorlease/fsm/tally"
	"github.com/quorlease/quorlease/fsm/window"
)

// freesKept bounds the clients whose way back is remembered for a slice.
const freesKept = 1024

// Desk decides acquires by their client's retry budget, with the counts of the
// node's replica. It is safe for concurrent use.
type Desk struct {
	// Counter counts what the desk admits.
	Counter *Counter
	// Suspects are the clients of which warnings may have to be given.
	Suspects *warn.Suspects
	waits    *Waits

	mu sync.Mutex
	// frees remembers when a refused client's window lets it through: in a storm
	// the same question comes thousands of times a second.
	frees map[string]frees
}

// frees is an answer that holds during one slice.
type frees struct {
	slice int64
	at    bucket.Instant
}

// NewDesk returns the desk of a process of the node with that Raft id.
func NewDesk(node string) *Desk {
	var b [8]byte
	// crypto/rand.Read never fails: it ends the program instead.
	_, _ = rand.Read(b[:])
	return &Desk{
		Counter:  New(Config{Node: node, Boot: binary.LittleEndian.Uint64(b[:])}),
		Suspects: warn.NewSuspects(), waits: NewWaits(0), frees: make(map[string]frees),
	}
}

// Ask is one acquire to decide on.
type Ask struct {
	// At is the node's own steady clock, Now the authority time to decide by.
	At      time.Duration
	Now     bucket.Instant
	Acquire *logv1.Acquire
	Attempt uint32
	// Nodes is the number of serving nodes, as in Request.
	Nodes int
}

// Ruling is what the desk says of an acquire. The zero Ruling is that of one that
// is in no budget.
type Ruling struct {
	// Denial refuses it. Warning would have, if the budget's mode enforced it.
	Denial, Warning *logv1.Denial
	// Budget is the retry budget, nil for an acquire that is in none.
	Budget *logv1.RetryBudget
	// early: it came before a wait was over that its client was told of.
	early bool
	// hold is its room until Finish.
	hold Hold
}

// Decide says what a client's retry budget makes of an acquire. One that is not
// denied is held until Finish. The caller holds the lock that also covers
// applying an entry.
func (d *Desk) Decide(m *fsm.Machine, ask Ask) Ruling {
	client := ask.Acquire.GetClient()
	budget := m.BudgetFor(client)
	if budget == nil || budget.GetMode() == logv1.Mode_MODE_OFF {
		return Ruling{}
	}
	lenient := budget.GetMode() != logv1.Mode_MODE_ENFORCE
	total, retried := m.ClientCounts(ask.Now, client)
	rule := fsm.RuleOf(budget)
	decision, hold := d.Counter.Decide(ask.At, ask.Now, Request{
		Client: client, Attempt: ask.Attempt, Rule: rule, Lenient: lenient,
		Total: total, Retries: retried, Known: m.KnowsClient(client), Nodes: ask.Nodes, Replica: m,
		WarnFraction: warnFraction(budget),
	})
	ruling := Ruling{Budget: budget, early: d.waits.Early(ask.At, ask.Acquire), hold: hold}
	if decision.Verdict == Admit {
		return ruling
	}
	denial := &logv1.Denial{Reason: logv1.Reason_REASON_RETRY_BUDGET, RetryAfter: int64(decision.RetryAfter)}
	switch decision.Verdict {
	case Attempts:
		denial.Reason = logv1.Reason_REASON_ATTEMPTS
	case Budget:
		denial.FreesIn = int64(d.freesAt(m, ask, rule) - ask.Now)
	case Admit, PartUsedUp:
	}
	if lenient {
		ruling.Warning = denial
	} else {
		ruling.Denial = denial
	}
	return ruling
}

// Answered takes what became of an acquire that was decided on. result is nil
// where there was an error, and then recorded says whether it may have been
// granted. Denials with a wait are counted, the desk's own too; the client's next
// acquire shows whether it waited. What there was no hold to count under comes
// back, for Note.
func (d *Desk) Answered(
	at time.Duration, ask *logv1.Acquire, ruling Ruling, result *logv1.AcquireResult, recorded bool,
) (denied tally.Count) {
	if result != nil {
		// The repetition of a lease id is no new request.
		recorded = result.GetGranted() && !result.GetRepeated()
	}
	if ruling.early {
		denied.Early = 1
	}
	if !partOnly(ruling.Denial) && d.waits.Tell(at, ask.GetClient(), result.GetDenials()) {
		denied.Denied = 1
	}
	if ruling.hold != (Hold{}) {
		d.Counter.Finish(at, ruling.hold, recorded, denied)
		return tally.Count{}
	}
	return denied
}

// partOnly: a retry was refused because the node has to report first. That says
// nothing to the client's other work.
func partOnly(denial *logv1.Denial) bool {
	return denial.GetReason() == logv1.Reason_REASON_RETRY_BUDGET && denial.GetRetryAfter() == int64(PartRetryAfter) &&
		denial.GetFreesIn() == 0
}

// Tried is what a client did that nobody decided here.
type Tried struct {
	// Count is Total, Retries and Throttled, each of them since the client's last
	// report.
	Count tally.Count
	// Fault is the commonest error among them.
	Fault tally.Fault
}

// Note counts what happened to a client without a decision. It wants the lock
// that Decide wants. Refusals alone bring no client into being (S1-52).
func (d *Desk) Note(m *fsm.Machine, at time.Duration, now bucket.Instant, client string, a Tried) {
	budget := m.BudgetFor(client)
	if budget.GetMode() == logv1.Mode_MODE_OFF {
		return
	}
	r := Request{Client: client, Known: m.KnowsClient(client), Replica: m, WarnFraction: warnFraction(budget)}
	if budget == nil {
		r.Rule.Window = m.SliceOf(client) * window.Slices
	} else {
		r.Rule = fsm.RuleOf(budget)
		r.Total, r.Retries = m.ClientCounts(now, client)
	}
	d.Counter.Note(at, now, r, a)
}

// warnFraction is the line of which anybody is told.
func warnFraction(budget *logv1.RetryBudget) int64 {
	switch budget.GetMode() {
	case logv1.Mode_MODE_ENFORCE, logv1.Mode_MODE_WARN:
		return budget.GetWarnFraction()
	case logv1.Mode_MODE_OFF, logv1.Mode_MODE_SHADOW:
	}
	return 0
}

// freesAt is when the window would let the client through, if it asked nothing
// more until then: the beginning of a slice.
func (d *Desk) freesAt(m *fsm.Machine, ask Ask, rule retry.Rule) bucket.Instant {
	length := window.Length(rule.Window)
	slice := window.At(int64(ask.Now), length)
	client := ask.Acquire.GetClient()
	d.mu.Lock()
	defer d.mu.Unlock()
	if known, ok := d.frees[client]; ok && known.slice == slice {
		return known.at
	}
	// Where the replica does not know yet, the next slice is the earliest.
	at := bucket.Instant((slice + 1) * int64(length))
	if wait := m.Client(ask.Now, client).FreesIn; wait > 0 {
		at = ask.Now + bucket.Instant(wait)
	}
	if len(d.frees) >= freesKept {
		clear(d.frees)
	}
	d.frees[client] = frees{slice: slice, at: at}
	return at
}

// Applied takes a report of any node that the node's replica m has just applied.
// at is the node's own steady clock. The caller holds the lock that covers
// applying an entry.
func (d *Desk) Applied(m *fsm.Machine, at time.Duration, report *logv1.ReportRetries) {
	d.Counter.Applied(report)
	for _, s := range report.GetSlices() {
		client := s.GetClient()
		if s.GetRetries() > 0 {
			d.Suspects.Add(client)
		} else {
			d.Suspects.Touch(client)
		}
		if budget := m.BudgetFor(client); warnFraction(budget) > 0 && d.Counter.keeps(client) {
			r := Request{Client: client, Rule: fsm.RuleOf(budget), WarnFraction: budget.GetWarnFraction()}
			r.Total, r.Retries = m.ClientCounts(m.Now(), client)
			d.Counter.crossing(at, r)
		}
	}
}

// Restored compares what is kept with a replica that a snapshot replaced. The
// caller holds the lock that also covers applying an entry.
func (d *Desk) Restored(m *fsm.Machine) {
	d.Counter.Reconcile(m)
	for client := range m.Retrying() {
		d.Suspects.Add(client)
	}
}
