// Package judge watches a simulation and says which guarantee was broken first.
//
// It sees what nobody inside can: real time, every committed entry, every answer
// that was given and every token that was spent. Its sums are whole numbers, and
// it shares no arithmetic with what it judges.
package judge

import (
	"fmt"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// DriftPPM is the most that a clock may be off, in millionths, with room for
// rounding: two machines that are 200 off in opposite directions differ by 400.
const DriftPPM = 210

// Violation is a broken rule: G1 to G12, A20, or one of those that docs/design/simulator.md names.
type Violation struct {
	Rule, What string
}

func (v *Violation) String() string { return v.Rule + ": " + v.What }

// Judge is all checkers. The zero value is not ready: use New.
type Judge struct {
	// Broken is the first violation, nil while there is none.
	Broken *Violation

	debits  debits
	spent   spent
	ledger  ledger
	clock   clock
	reports reports

	guarantees guarantees
	budget     budget
	queue      queue
	patient    bool
	slots      slots
	pauses     pauses
	escrows    escrows

	hashes map[uint64]uint64
}

// New is a judge who has seen nothing.
func New() *Judge {
	j := &Judge{hashes: make(map[uint64]uint64)}
	j.debits = debits{judge: j, buckets: make(map[place]*debit), unseen: make(map[place]*debit)}
	j.spent = spent{
		judge: j, buckets: make(map[place]*spending), local: make(map[string]*spending),
		incidents: make(map[string]*spending),
	}
	j.ledger = ledger{judge: j, records: make(map[string]*record)}
	j.clock = clock{judge: j}
	j.reports = reports{judge: j, counts: make(map[report]*count)}
	j.queue = queue{
		judge: j, waiting: make(map[string]*waiter), gone: make(map[string]uint64), unheld: make(map[string]unheld),
		lanes: make(map[lane]int64), guaranteed: make(map[lane]guaranteedRate),
	}
	j.slots = slots{
		judge: j, most: make(map[string]int64), leases: make(map[string]*slotLease), open: make(map[string]*slotLease),
		sessions: make(map[string]*slotSession),
	}
	j.escrows = escrows{judge: j}
	j.pauses = pauses{judge: j, keys: make(map[place]*closing)}
	j.budget = budget{judge: j, open: make(map[string]decided)}
	j.guarantees = guarantees{judge: j, buckets: make(map[place]*guarantee), leases: make(map[string][]taken)}
	return j
}

// Complain notes a violation, if it is the first.
func (j *Judge) Complain(rule, format string, values ...any) {
	if j.Broken == nil {
		j.Broken = &Violation{Rule: rule, What: fmt.Sprintf(format, values...)}
	}
}

// place is one bucket.
type place struct{ limit, key, dimension string }

func (p place) String() string { return fmt.Sprintf("%s/%s:%s", p.limit, p.key, p.dimension) }

// Hash takes a node's state hash at an index (G9).
func (j *Judge) Hash(node string, index, hash uint64) {
	before, known := j.hashes[index]
	if !known {
		j.hashes[index] = hash
		return
	}
	if before != hash {
		j.Complain("G9", "at index %d the state of %s has hash %016x, elsewhere it is %016x", index, node, hash, before)
	}
}

// Stamp says where an entry comes from.
type Stamp struct {
	Stamp bucket.Instant
	// Real is when it was stamped.
	Real time.Duration
	// Term is the one in which it was stamped, Node who did, Process in which of
	// its lives.
	Term    uint64
	Node    int
	Process int
	// Applied is how far that node had applied the log, Restored where it began to.
	Applied, Restored uint64
}

// Committed is one committed entry, seen once, in the order of the log.
type Committed struct {
	Index, Term uint64
	Stamp       *Stamp
	// Real is when somebody first applied it.
	Real time.Duration
	// Now is authority time after it.
	Now     bucket.Instant
	Entry   *logv1.Entry
	Results []*logv1.Result
}

// String shows an entry in a few lines.
func (c *Committed) String() string {
	text := fmt.Sprintf("entry %d of term %d by n%d, stamp %v, now %v: ", c.Index, c.Term, c.Stamp.Node,
		time.Duration(c.Stamp.Stamp), time.Duration(c.Now))
	if len(c.Results) == 0 {
		return text + "tick"
	}
	for i, op := range c.Entry.GetOperations() {
		text += fmt.Sprintf("\n%16s%v -> %v", "", op, c.Results[i])
	}
	return text
}

// Commit takes an entry.
func (j *Judge) Commit(c *Committed) {
	j.clock.committed(c)
	j.debits.now = int64(c.Now)
	j.slots.advance(int64(c.Now))
	for i, op := range c.Entry.GetOperations() {
		result := c.Results[i]
		j.debits.take(op, result)
		j.guarantees.take(int64(c.Now), op, result)
		j.slots.take(int64(c.Now), op, result)
		j.pauses.take(int64(c.Now), op, result)
		j.escrows.take(c, op, result)
		j.queue.take(c, op, result)
		j.ledger.committed(c, op, result)
		if report := op.GetReportAdmitted(); report != nil {
			j.reports.booked(report, result.GetAdmitted())
		}
	}
	j.queue.look(c, j.patient)
}
