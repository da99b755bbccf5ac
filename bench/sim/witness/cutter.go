package witness

import (
	"fmt"
	"slices"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/bench/sim/judge"
	"github.com/quorlease/quorlease/bench/sim/replica"
	"github.com/quorlease/quorlease/bench/sim/rules"
	"github.com/quorlease/quorlease/bench/sim/stage"
	"github.com/quorlease/quorlease/bench/sim/trap"
	"github.com/quorlease/quorlease/fsm/record"
)

// Cutter applies the log too, and looks at a bucket more often: it takes a token
// and gives it back at once. What a bucket holds must not depend on how often it
// was looked at (T47), nor on what is asked of other limits: of those it applies
// nothing.
type Cutter struct {
	witness *Witness
	stage   *stage.Stage
	replica *replica.Replica
	serial  int
	// elsewhere are leases of other limits.
	elsewhere map[record.LeaseID]bool
	// idle: a trap is seeded, and what is looked at differs anyway.
	idle bool
}

// NewCutter is one beside a witness.
func NewCutter(v *Witness, s *stage.Stage, kind trap.Kind) *Cutter {
	return &Cutter{
		witness: v, stage: s, replica: replica.New(kind), elsewhere: make(map[record.LeaseID]bool),
		idle: kind != trap.None,
	}
}

// about says whether an operation may be about the limit that is looked at: all but
// acquires of others, and what is done with their leases.
func (c *Cutter) about(op *logv1.Operation) bool {
	switch kind := op.GetKind().(type) {
	case *logv1.Operation_ApplyLimits:
		return true
	case *logv1.Operation_Acquire:
		charges := func(one *logv1.Charge) bool { return one.GetLimit() == rules.Mixed }
		if slices.ContainsFunc(kind.Acquire.GetCharges(), charges) {
			return true
		}
		if kind.Acquire.GetTrack() {
			c.elsewhere[record.LeaseID(kind.Acquire.GetLeaseId())] = true
		}
	case *logv1.Operation_Settle:
		return !c.elsewhere[record.LeaseID(kind.Settle.GetLeaseId())]
	case *logv1.Operation_Release:
		return !c.elsewhere[record.LeaseID(kind.Release.GetLeaseId())]
	case *logv1.Operation_Renew:
		return !c.elsewhere[record.LeaseID(kind.Renew.GetLeaseId())]
	}
	return false
}

// See takes an entry that was committed, after the witness.
func (c *Cutter) See(entry *judge.Committed) {
	if c.idle {
		return
	}
	mine := &logv1.Entry{Stamp: entry.Entry.GetStamp(), Wall: entry.Entry.GetWall()}
	for _, op := range entry.Entry.GetOperations() {
		if c.about(op) {
			mine.Operations = append(mine.Operations, op)
		}
	}
	c.replica.Take(entry.Index, mine)
	if !c.stage.Chance(4) {
		return
	}
	c.serial++
	id := fmt.Appendf(nil, "%-16s", fmt.Sprint("cut", c.serial))
	results := c.replica.Take(entry.Index, &logv1.Entry{Operations: []*logv1.Operation{
		rules.Acquire(&logv1.Acquire{
			LeaseId: id, Class: "live", Track: true, Charges: rules.Charges(rules.Mixed, "", "requests", 1),
		}),
		{Kind: &logv1.Operation_Release{Release: &logv1.Release{LeaseId: id}}},
	}})
	if c.witness.Replica.Limit(rules.Mixed) == nil || results[0].GetAcquire() == nil {
		return
	}
	c.compare()
}

func (c *Cutter) compare() {
	mine, err := c.replica.Inspect(0, rules.Mixed, "")
	theirs, otherwise := c.witness.Replica.Inspect(0, rules.Mixed, "")
	if err != nil || otherwise != nil {
		c.witness.judge.Complain("model", "%v, %v", err, otherwise)
		return
	}
	a, b := mine.Buckets[0], theirs.Buckets[0]
	if a.Level != b.Level || a.Debt != b.Debt || !slices.Equal(a.Classes, b.Classes) {
		c.witness.judge.Complain("time", "looked at more often a bucket is %+v, else %+v", a, b)
	}
}
