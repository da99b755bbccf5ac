package convert

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/quorlease/quorlease/api/limitsfile"
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/cluster"
	"github.com/quorlease/quorlease/cluster/events"
	"github.com/quorlease/quorlease/cluster/queue"
	"github.com/quorlease/quorlease/cluster/retries"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/pace"
	"github.com/quorlease/quorlease/fsm/record"
)

func nanoseconds(n int64) *durationpb.Duration { return durationpb.New(time.Duration(n)) }

// after is nil for zero: absent.
func after(n int64) *durationpb.Duration {
	if n == 0 {
		return nil
	}
	return nanoseconds(n)
}

// AcquireAnswer answers op, an acquire.
func AcquireAnswer(op *logv1.Acquire, r *logv1.AcquireResult) *quorleasev1.AcquireResponse {
	return (&AnswerRoom{}).Acquire(op, r)
}

// Acquire is AcquireAnswer in this room, where the answer before it is no more.
func (all *AnswerRoom) Acquire(op *logv1.Acquire, r *logv1.AcquireResult) *quorleasev1.AcquireResponse {
	answer := &all.answer
	answer.Reset()
	answer.Decision, answer.Source = quorleasev1.Decision_DENIED, source(r)
	answer.Denials, answer.Warnings = denials(r.GetDenials()), denials(r.GetWarnings())
	answer.RepeatedRequest, answer.Remaining = r.GetRepeated(), remaining(r.GetRemaining())
	answer.Queue = queueStatus(r.GetQueue())
	if !r.GetGranted() {
		return answer
	}
	answer.Decision, answer.Lease = quorleasev1.Decision_GRANTED, &all.lease
	lease, ttl := answer.GetLease(), time.Duration(r.GetTtl())
	lease.Id, lease.Charges = leaseID(op), charges(r.GetCharges(), all)
	lease.Tracked, lease.State = r.GetTracked(), quorleasev1.LeaseState(r.GetState())
	all.ttl.Seconds, all.ttl.Nanos = int64(ttl/time.Second), int32(ttl%time.Second)
	lease.Ttl = &all.ttl
	return answer
}

// AnswerRoom is memory for the answer to an acquire in one piece, with one charge.
type AnswerRoom struct {
	answer  quorleasev1.AcquireResponse
	lease   quorleasev1.Lease
	ttl     durationpb.Duration
	charge  quorleasev1.Charge
	charges [1]*quorleasev1.Charge
}

// queueStatus is nil for what neither waited nor was refused by a queue.
func queueStatus(q *logv1.QueueStatus) *quorleasev1.QueueStatus {
	if q == nil {
		return nil
	}
	return &quorleasev1.QueueStatus{
		Position: q.GetPosition(), Eta: nanoseconds(q.GetEta()), Waited: nanoseconds(q.GetWaited()),
	}
}

// leaseID is the id that the request named, or one drawn at random: different
// from every other, which is all that can be asked of a lease without a record.
func leaseID(op *logv1.Acquire) string {
	if id := op.GetLeaseId(); len(id) > 0 {
		return hex.EncodeToString(id)
	}
	// Nothing can be done with it, so nobody gains by guessing it: the cheap source
	// will do.
	var id [16]byte
	binary.BigEndian.PutUint64(id[:], rand.Uint64())
	binary.BigEndian.PutUint64(id[8:], rand.Uint64())
	return hex.EncodeToString(id[:])
}

// source says where it was decided. Escrow is the node's own. A retry budget is decided by the node that
// was asked, from its replica and its own counts: no entry, no source.
func source(r *logv1.AcquireResult) quorleasev1.Source {
	if retries.DecidedHere(r) {
		return quorleasev1.Source_SOURCE_UNSPECIFIED
	}
	if r.GetEscrow() {
		return quorleasev1.Source_ESCROW
	}
	return quorleasev1.Source_CONSENSUS
}

// charges are those of a lease. One takes its place in room.
func charges(list []*logv1.Charge, room *AnswerRoom) []*quorleasev1.Charge {
	out := room.charges[:min(1, len(list))]
	if len(list) > 1 {
		out = make([]*quorleasev1.Charge, len(list))
	}
	for i, c := range list {
		one := &room.charge
		if i > 0 {
			one = &quorleasev1.Charge{}
		}
		one.Limit, one.Key, one.Dimension, one.Amount = c.GetLimit(), c.GetKey(), c.GetDimension(), c.GetAmount()
		out[i] = one
	}
	return out
}

func denials(list []*logv1.Denial) []*quorleasev1.Denial {
	var out []*quorleasev1.Denial
	for _, d := range list {
		out = append(out, &quorleasev1.Denial{
			Reason: quorleasev1.Reason(d.GetReason()),
			Limit:  d.GetLimit(), Key: d.GetKey(), Dimension: d.GetDimension(),
			RetryAfter: after(d.GetRetryAfter()), Never: d.GetRetryAfter() == 0,
			FreesIn: after(d.GetFreesIn()),
		})
	}
	return out
}

func remaining(list []*logv1.Remaining) []*quorleasev1.Remaining {
	var out []*quorleasev1.Remaining
	for _, r := range list {
		out = append(out, remainingOf(r))
	}
	return out
}

// remainingOf is nil for nil.
func remainingOf(r *logv1.Remaining) *quorleasev1.Remaining {
	if r == nil {
		return nil
	}
	return &quorleasev1.Remaining{
		Limit: r.GetLimit(), Key: r.GetKey(), Dimension: r.GetDimension(), Tokens: r.GetTokens(),
	}
}

// PeekAnswer answers a look.
func PeekAnswer(r *logv1.AcquireResult) *quorleasev1.PeekResponse {
	answer := &quorleasev1.PeekResponse{
		Decision: quorleasev1.Decision_DENIED,
		Denials:  denials(r.GetDenials()), Remaining: remaining(r.GetRemaining()),
	}
	if r.GetGranted() {
		answer.Decision = quorleasev1.Decision_GRANTED
	}
	return answer
}

func settlements(list []*logv1.Settlement) []*quorleasev1.Settlement {
	var out []*quorleasev1.Settlement
	for _, s := range list {
		out = append(out, &quorleasev1.Settlement{
			Limit: s.GetLimit(), Key: s.GetKey(), Dimension: s.GetDimension(),
			Amount: s.GetAmount(), Used: s.GetUsed(), Refunded: s.GetRefunded(),
			Excess: s.GetExcess(), WrittenOff: s.GetWrittenOff(),
		})
	}
	return out
}

// SettleAnswer answers a settle.
func SettleAnswer(r *logv1.LeaseResult) *quorleasev1.SettleResponse {
	return &quorleasev1.SettleResponse{
		State: quorleasev1.LeaseState(r.GetState()), RepeatedRequest: r.GetRepeated(),
		Settlements: settlements(r.GetSettlements()), Ttl: nanoseconds(r.GetTtl()),
	}
}

// ReleaseAnswer answers a release.
func ReleaseAnswer(r *logv1.LeaseResult) *quorleasev1.ReleaseResponse {
	return &quorleasev1.ReleaseResponse{
		State: quorleasev1.LeaseState(r.GetState()), RepeatedRequest: r.GetRepeated(),
		Settlements: settlements(r.GetSettlements()),
	}
}

// RenewAnswer answers a renewal.
func RenewAnswer(r *logv1.LeaseResult) *quorleasev1.RenewResponse {
	return &quorleasev1.RenewResponse{
		State: quorleasev1.LeaseState(r.GetState()), RepeatedRequest: r.GetRepeated(),
		Settlements: settlements(r.GetSettlements()), Ttl: nanoseconds(r.GetTtl()),
	}
}

// ApplyAnswer answers a change of limits, also one that was only planned.
func ApplyAnswer(r *logv1.LimitsResult) *quorleasev1.LimitsApplyResponse {
	return &quorleasev1.LimitsApplyResponse{Revision: r.GetRevision(), Changes: changes(r.GetChanges())}
}

func changes(list []*logv1.LimitChange) []*quorleasev1.LimitChange {
	var out []*quorleasev1.LimitChange
	for _, c := range list {
		out = append(out, &quorleasev1.LimitChange{
			Name:        c.GetName(),
			LimitBefore: limitsfile.Describe(c.GetLimitBefore()), LimitAfter: limitsfile.Describe(c.GetLimitAfter()),
			RetryBudgetBefore: limitsfile.DescribeBudget(c.GetBudgetBefore()),
			RetryBudgetAfter:  limitsfile.DescribeBudget(c.GetBudgetAfter()),
		})
	}
	return out
}

// RevisionAnswer shows one past change.
func RevisionAnswer(r *fsm.Revision) *quorleasev1.Revision {
	return &quorleasev1.Revision{
		Revision: r.Revision, Time: timestamppb.New(time.Unix(0, r.Wall)), Author: r.Author,
		Changes: changes(r.Changes),
	}
}

// InspectAnswer shows one key of one limit.
func InspectAnswer(in *fsm.Inspection) *quorleasev1.LimitsInspectResponse {
	answer := &quorleasev1.LimitsInspectResponse{
		Limit: limitsfile.Describe(in.Limit), Key: in.Key, Seen: in.Seen, Now: int64(in.Now),
		Keys: int64(in.Keys), OpenLeases: int64(in.OpenLeases), Reports: reportStates(in.Reports),
		Control: controlState(in.Control, in.Now),
	}
	if in.Ends != 0 {
		answer.WindowStarts = timestamppb.New(time.Unix(0, in.Starts))
		answer.WindowEnds = timestamppb.New(time.Unix(0, in.Ends))
	}
	for _, b := range in.Buckets {
		state := &quorleasev1.BucketState{
			Dimension: b.Dimension, Level: b.Level, Debt: b.Debt, Burst: b.Burst,
			Rate: &quorleasev1.Rate{Amount: b.Amount, Interval: durationpb.New(b.Interval)},
			Open: b.Open, Slack: durationpb.New(b.Slack), SlackTokens: b.SlackTokens,
		}
		for _, c := range b.Classes {
			state.Classes = append(state.Classes, &quorleasev1.ClassState{
				Name: c.Name, Level: c.Level, Debt: c.Debt,
				SubBurst: c.SubBurst, EffectiveBurst: c.EffectiveBurst,
			})
		}
		answer.Buckets = append(answer.Buckets, state)
	}
	return answer
}

// QueueStates shows what waits at a key.
func QueueStates(list []queue.ClassState) []*quorleasev1.QueueState {
	var out []*quorleasev1.QueueState
	for _, q := range list {
		state := &quorleasev1.QueueState{
			Class: q.Class, Waiting: q.Waiting, Oldest: durationpb.New(q.Oldest), Eta: durationpb.New(q.ETA),
			Tokens: map[string]int64{},
		}
		for _, t := range q.Tokens {
			state.Tokens[t.Dimension] = t.Tokens
		}
		for _, c := range q.Clients {
			state.Clients = append(state.Clients, &quorleasev1.QueueClient{
				Client: c.Client, Waiting: c.Waiting, Weight: c.Weight,
			})
		}
		out = append(out, state)
	}
	return out
}

// controlState is what feedback has done to a key, nil for nothing.
func controlState(c *record.Control, now bucket.Instant) *quorleasev1.ControlState {
	if c == nil {
		return nil
	}
	state := &quorleasev1.ControlState{
		Blocked: c.Blocked, PacePpm: c.Pace.At(max(now, c.Pace.Opens)), Reason: c.Reason, Client: c.Client,
	}
	if c.Paused(now) {
		state.Paused = nanoseconds(int64(c.Pace.Opens - now))
	}
	if whole := c.Pace.WholeAt(); whole > now && whole != pace.Never {
		state.WholeIn = nanoseconds(int64(whole - now))
	}
	return state
}

// StatusAnswer shows the cluster.
func StatusAnswer(s cluster.Status) *quorleasev1.ClusterStatusResponse {
	answer := &quorleasev1.ClusterStatusResponse{ClusterId: s.ClusterID, Leader: s.Leader, Term: s.Term}
	for _, n := range s.Nodes {
		role := quorleasev1.Role_LEARNER
		if n.Role == cluster.Voter {
			role = quorleasev1.Role_VOTER
		}
		node := &quorleasev1.NodeStatus{
			Id: n.Name, Role: role, Healthy: n.Healthy,
			Peer: n.Peer, Grpc: n.GRPC, Http: n.HTTP, Version: n.Version,
		}
		if n.Answers {
			node.Lag = &n.Lag
		}
		answer.Nodes = append(answer.Nodes, node)
	}
	return answer
}

// EventAnswer shows one event.
func EventAnswer(e events.Event) *quorleasev1.EventsWatchResponse {
	return &quorleasev1.EventsWatchResponse{Event: &quorleasev1.Event{
		Index: e.Index, Time: timestamppb.New(e.Time), Kind: string(e.Kind),
		Severity: quorleasev1.Severity(e.Severity), Limit: e.Limit, Client: e.Client,
		Value: e.Value, Text: e.Text,
	}}
}

// AdjustAnswer answers a change by hand.
func AdjustAnswer(r *logv1.AdjustResult) *quorleasev1.LimitsAdjustResponse {
	return &quorleasev1.LimitsAdjustResponse{Before: remainingOf(r.GetBefore()), After: remainingOf(r.GetAfter())}
}
