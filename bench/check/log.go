package check

import (
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/disk"
	"github.com/quorlease/quorlease/cluster/entry"
	"github.com/quorlease/quorlease/fsm"
)

// History is what a stopped node's log tells.
type History struct {
	Verdict
	// First and Last are the indexes of its entries of operations, and From and To
	// the authority time that they cover, since the cluster began.
	First, Last uint64
	From, To    time.Duration
	// Partial: it begins with a snapshot, and what came before is not known.
	Partial bool
	// Granted is the tokens debited of each limit, less what came back.
	Granted map[string]int64
	// Spent is what could be spent of it by its own clock, by limit and dimension.
	Spent []Spent
	// leases is how often each was granted of which a record was made, by its id.
	leases map[string]int
}

// Missing is how many leases are not there, and how many were granted more than once.
func (h *History) Missing(leases []string) (lost, doubled int) {
	for _, id := range leases {
		switch n := h.leases[id]; {
		case n == 0:
			lost++
		case n > 1:
			doubled++
		}
	}
	return lost, doubled
}

// Problems says, a line each, which guarantee broke and how.
func (h *History) Problems() (lines []string) {
	if h.Broken > 0 {
		lines = append(lines, "G1: "+h.Worst)
	}
	for i := range h.Spent {
		if s := &h.Spent[i]; !s.OK() {
			lines = append(lines, "G2: "+s.Said())
		}
	}
	return lines
}

// Said is the verdict of G1 in words.
func (h *History) Said() string {
	return h.Verdict.Said(fmt.Sprintf("entries %d to %d, %v of authority time",
		h.First, h.Last, (h.To - h.From).Round(time.Millisecond)))
}

// Log replays the log in a node's data directory, as far back as it goes, and
// holds its debits to G1. No process may own the directory.
func Log(dir string) (*History, error) {
	r := NewReplay()
	err := disk.Read(dir, disk.Visitor{Snapshot: r.Restore, Entry: r.Entry})
	if err != nil {
		return nil, fmt.Errorf("check the log in %s: %w", dir, err)
	}
	return r.History(), nil
}

// Replay applies entries to a state machine of its own and watches what it
// answers. It is for one goroutine.
type Replay struct {
	machine *fsm.Machine
	decoder entry.Decoder
	debits  *Debits
	history History
	now     int64
	// overrides are those of limits that have some.
	overrides map[string][]*logv1.Override
	// escrows are what nodes were given and have not given back.
	escrows map[string]*escrow
	spends  *spends
}

// NewReplay begins before the first entry.
func NewReplay() *Replay {
	return &Replay{
		machine: fsm.New(), debits: NewDebits(), history: History{Granted: map[string]int64{}, leases: map[string]int{}},
		overrides: map[string][]*logv1.Override{}, escrows: map[string]*escrow{}, spends: newSpends(),
	}
}

// Restore begins with a snapshot instead. Levels in it are not looked at: every
// bucket counts as full.
func (r *Replay) Restore(state io.Reader) error {
	machine, err := fsm.Restore(state)
	if err != nil {
		return err
	}
	r.machine, r.history.Partial = machine, true
	r.now = int64(machine.Now())
	limits, _ := machine.Limits("")
	for _, limit := range limits {
		r.limit(limit)
	}
	return nil
}

// Entry applies one entry as it lies in the log, in its term.
func (r *Replay) Entry(index, term uint64, data []byte) error {
	e, err := r.decoder.Decode(data, term)
	if err != nil {
		return err
	}
	results, _ := r.machine.Apply(index, e)
	r.Applied(index, time.Duration(r.machine.Now()), e.GetOperations(), results)
	return nil
}

// Applied takes in what another state machine has answered to the operations of an entry,
// and its clock afterwards. Entries come in their order, all by Entry or all by Applied.
func (r *Replay) Applied(index uint64, now time.Duration, operations []*logv1.Operation, results []*logv1.Result) {
	r.now = int64(now)
	if r.history.First == 0 {
		r.history.First, r.history.From = index, now
	}
	r.history.Last, r.history.To = index, now
	for i, op := range operations {
		r.operation(op, results[i])
	}
}

// History is what came of it so far.
func (r *Replay) History() *History {
	h := r.history
	h.Verdict, h.Spent = r.debits.Verdict(), r.spends.verdicts()
	return &h
}

func (r *Replay) operation(op *logv1.Operation, result *logv1.Result) {
	switch kind := op.GetKind().(type) {
	case *logv1.Operation_Acquire:
		if answer := result.GetAcquire(); answer.GetGranted() && !answer.GetRepeated() {
			if kind.Acquire.GetTrack() {
				r.history.leases[hex.EncodeToString(kind.Acquire.GetLeaseId())]++
			}
			r.granted(kind.Acquire, answer)
		}
	case *logv1.Operation_AskEscrow:
		r.asked(kind.AskEscrow, result.GetEscrow())
	case *logv1.Operation_ReturnEscrow:
		r.returned(kind.ReturnEscrow)
	case *logv1.Operation_Settle:
		if answer := result.GetLease(); !answer.GetRepeated() {
			r.refunded(answer.GetSettlements())
			if !kind.Settle.GetProgress() {
				r.spends.settled(kind.Settle.GetLeaseId(), r.now, answer.GetSettlements())
			}
		}
	case *logv1.Operation_Release:
		if answer := result.GetLease(); !answer.GetRepeated() {
			r.refunded(answer.GetSettlements())
			r.spends.settled(kind.Release.GetLeaseId(), r.now, answer.GetSettlements())
		}
	case *logv1.Operation_ApplyLimits:
		for _, change := range result.GetLimits().GetChanges() {
			r.changed(change)
		}
	case *logv1.Operation_Adjust:
		if result.GetAdjust() != nil {
			r.debits.Adjusted(Bucket{kind.Adjust.GetLimit(), kind.Adjust.GetKey(), kind.Adjust.GetDimension()}, r.now)
		}
	}
}

// granted debits what was granted. What only warns of a refusal took nothing, and
// what escrow paid was debited when it was moved.
func (r *Replay) granted(op *logv1.Acquire, answer *logv1.AcquireResult) {
	for i, c := range op.GetCharges() {
		bucket := Bucket{c.GetLimit(), c.GetKey(), c.GetDimension()}
		took := !slices.ContainsFunc(answer.GetWarnings(), func(d *logv1.Denial) bool {
			return (Bucket{d.GetLimit(), d.GetKey(), d.GetDimension()}) == bucket
		})
		paid := slices.Contains(answer.GetPaid(), uint32(i)) && r.paid(c)
		if !paid && !took || r.overridden(c.GetLimit(), c.GetKey()) {
			continue
		}
		at := r.spends.can(bucket, c.GetAmount(), r.now, time.Duration(answer.GetTtl()), op.GetTrack())
		if op.GetTrack() {
			r.spends.leased(op.GetLeaseId(), at)
		}
		if !paid {
			r.debits.Debit(bucket, c.GetAmount(), r.now)
			r.history.Granted[c.GetLimit()] += c.GetAmount()
		}
	}
}

func (r *Replay) refunded(settlements []*logv1.Settlement) {
	for _, s := range settlements {
		if s.GetRefunded() > 0 && !r.overridden(s.GetLimit(), s.GetKey()) {
			r.debits.Refund(Bucket{s.GetLimit(), s.GetKey(), s.GetDimension()}, s.GetRefunded(), r.now)
			r.history.Granted[s.GetLimit()] -= s.GetRefunded()
		}
	}
}

// changed takes over the new numbers of a limit. What nodes hold of it is void: it can
// be given back, and pays for nothing any more.
func (r *Replay) changed(change *logv1.LimitChange) {
	after := change.GetLimitAfter()
	for _, e := range r.escrows {
		e.void = e.void || e.bucket.Limit == change.GetName()
	}
	kept := map[string]bool{}
	for _, d := range after.GetDimensions() {
		kept[d.GetName()] = true
	}
	for _, d := range change.GetLimitBefore().GetDimensions() {
		if !kept[d.GetName()] {
			r.debits.Forget(change.GetName(), d.GetName())
		}
	}
	r.limit(after)
}

// limit takes over the numbers of a limit. G1 is about token buckets: slots and
// quotas have bounds of another kind, and keys that have numbers of their own are
// left to the state machine's tests.
func (r *Replay) limit(limit *logv1.Limit) {
	r.overrides[limit.GetName()] = limit.GetOverrides()
	for _, d := range limit.GetDimensions() {
		if limit.GetKind() != logv1.Kind_KIND_RATE {
			r.debits.Forget(limit.GetName(), d.GetName())
			continue
		}
		spec := Spec{
			Amount: d.GetAmount(), Interval: d.GetInterval(),
			TargetBP: limit.GetTarget(), Burst: d.GetBurst(),
		}
		r.debits.Limit(limit.GetName(), d.GetName(), spec, r.now)
		r.spends.limit(limit, d, spec)
	}
}

func (r *Replay) overridden(limit, key string) bool {
	return slices.ContainsFunc(r.overrides[limit], func(o *logv1.Override) bool {
		return o.GetValue() == key || o.GetPrefix() && strings.HasPrefix(key, o.GetValue())
	})
}
