package fsmtest

import (
	"fmt"
	"strings"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
)

// World makes random histories in a small universe, in which things meet: few
// limits, keys, leases and clients, changes of limits in the middle, time that
// stands still, steps back and leaps.
type World struct {
	// Choose draws a number from 0 to n-1.
	Choose func(n int) int
	// Tame leaves out what is wrong on purpose, and what may break the debit
	// bound: adjustments and usage above the estimate.
	Tame bool
	// Feedback mixes in what providers say, and limits that ramp or adapt.
	Feedback bool
	// Whole mixes in slots, quotas, modes, sessions, overrides and what is kept for those who
	// wait.
	Whole bool
	// Escrow mixes in what nodes ask for, give back and pay with.
	Escrow bool
	// asked counts asks, asks are the last few.
	asked uint64
	asks  []*logv1.AskEscrow
	now   time.Duration
	seq   uint64
}

// Seeded is a world from a seed: the same one on every architecture, which
// rand.IntN would not be.
func Seeded(seed uint64) *World {
	return &World{Choose: func(n int) int {
		// SplitMix64.
		seed += 0x9e3779b97f4a7c15
		z := (seed ^ seed>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		return int((z ^ z>>31) % uint64(n))
	}}
}

// FromBytes is a world whose choices are bytes; when they are used up, ended
// says so and every choice is 0.
func FromBytes(data []byte) (w *World, ended func() bool) {
	w = &World{Choose: func(n int) int {
		if len(data) == 0 {
			return 0
		}
		b := int(data[0])
		data = data[1:]
		return b % n
	}}
	return w, func() bool { return len(data) == 0 }
}

func pick[T any](w *World, from ...T) T { return from[w.Choose(len(from))] }

// Entry is the next entry: up to six operations.
func (w *World) Entry() *logv1.Entry {
	w.now += pick(w, 0, 0, time.Nanosecond, time.Millisecond, 100*time.Millisecond, 333*time.Millisecond,
		time.Second, 5*time.Second, time.Minute, 7*time.Minute)
	if w.Choose(64) == 0 {
		w.now += 25 * time.Hour
	}
	stamp := w.now
	if w.Choose(8) == 0 {
		stamp -= pick(w, time.Nanosecond, time.Second, time.Hour)
	}
	entry := &logv1.Entry{Stamp: int64(stamp), Wall: int64(stamp) + int64(w.Choose(3)-1)*int64(time.Hour)}
	for range w.Choose(7) {
		entry.Operations = append(entry.Operations, w.Operation())
	}
	return entry
}

// Operation is a random operation.
func (w *World) Operation() *logv1.Operation {
	if w.Feedback && w.Choose(6) == 0 {
		return w.heard()
	}
	if w.Whole && w.Choose(4) == 0 {
		return w.more()
	}
	if w.Escrow && w.Choose(3) == 0 {
		return w.lent()
	}
	switch w.Choose(17) {
	case 0, 1, 2, 3, 4:
		return Operation(w.acquire())
	case 5, 6:
		return Operation(w.settle())
	case 7, 8:
		return Operation(&logv1.Release{LeaseId: w.leaseID(), Owner: w.owner(), Client: w.client()})
	case 9:
		w.seq += uint64(w.Choose(2))
		return Operation(&logv1.Renew{
			LeaseId: w.leaseID(), Owner: w.owner(), Sequence: w.seq, Ttl: int64(pick(w, time.Second, time.Minute, 0)),
			Used: w.usages(),
		})
	case 10, 11:
		return Operation(w.applyLimits())
	case 12:
		return Operation(w.report())
	case 13:
		if w.Tame {
			return Operation(w.acquire())
		}
		return Operation(w.adjust())
	case 14:
		return Operation(&logv1.SetNode{
			Node: &logv1.NodeRecord{RaftId: pick(w, "n1.1", "n2.1", ""), Grpc: w.client()}, Remove: w.Choose(4) == 0,
		})
	case 15:
		return Operation(w.admitted())
	}
	if w.Choose(4) == 0 {
		return Operation(&logv1.Form{
			ClusterId: strings.Repeat(pick(w, "0", "f", "x"), 32),
			Caps:      &logv1.Caps{Keys: 6, Leases: 12, Limits: 5, Clients: 2},
		})
	}
	return Operation(w.acquire())
}

func (w *World) leaseID() []byte {
	if !w.Tame && w.Choose(32) == 0 {
		return []byte("short")
	}
	return LeaseID(fmt.Sprint("lease", w.Choose(16)))
}

func (w *World) owner() string  { return pick(w, "", "", "alice", "bob") }
func (w *World) client() string { return pick(w, "c1", "c2", "team-c3", "") }
func (w *World) limit() string  { return pick(w, "l0", "l1", "l2", "l3") }

func (w *World) dimension() string { return pick(w, "requests", "requests", "tokens") }

// key: l0 and l1 have none, mostly.
func (w *World) key(limit string) string {
	if limit < "l2" {
		return ""
	}
	return pick(w, "k0", "k1", "k2", "k3")
}

func (w *World) amount() int64 {
	if !w.Tame && w.Choose(16) == 0 {
		return pick(w, int64(0), -1, 1<<53, 1<<53+1, 1<<63-1)
	}
	if w.Escrow && w.Choose(3) == 0 {
		return int64(pick(w, 20, 50, 100, 300))
	}
	return int64(pick(w, 1, 1, 2, 3, 5, 10, 11))
}

func (w *World) charge() *logv1.Charge {
	if w.Whole && w.Choose(2) == 0 {
		return w.counted()
	}
	limit := w.limit()
	return Charge(limit, w.key(limit), w.dimension(), w.amount())
}

func (w *World) acquire() *logv1.Acquire {
	op := &logv1.Acquire{
		LeaseId: w.leaseID(), Owner: w.owner(), Client: w.client(), Class: pick(w, "", "", "live", "batch"),
		Track: w.Choose(2) == 0,
	}
	for range 1 + w.Choose(3) {
		op.Charges = append(op.Charges, w.charge())
	}
	if w.Whole {
		w.way(op)
	}
	if w.Escrow {
		w.reserved(op)
	}
	return op
}

func (w *World) usages() []*logv1.Usage {
	var usages []*logv1.Usage
	for range w.Choose(3) {
		u := &logv1.Usage{Dimension: w.dimension(), Used: int64(pick(w, 0, 1, 2))}
		if !w.Tame {
			u.Used = pick(w, int64(0), 1, 2, 5, 20, 1<<40)
		}
		if w.Choose(2) == 0 {
			u.Limit = w.limit()
			u.Key = w.key(u.Limit)
		}
		usages = append(usages, u)
	}
	return usages
}

func (w *World) settle() *logv1.Settle {
	return &logv1.Settle{LeaseId: w.leaseID(), Owner: w.owner(), Used: w.usages(), Progress: w.Choose(4) == 0}
}

func (w *World) adjust() *logv1.Adjust {
	limit := w.limit()
	op := &logv1.Adjust{Limit: limit, Key: w.key(limit), Dimension: w.dimension(), Reason: pick(w, "why", "why", "")}
	if w.Choose(3) == 0 {
		op.Change = &logv1.Adjust_Reset_{Reset_: true}
		return op
	}
	op.Change = &logv1.Adjust_Add{Add: w.amount() - int64(w.Choose(12))}
	return op
}

func (w *World) report() *logv1.ReportRetries {
	op := &logv1.ReportRetries{Node: pick(w, "n1", "n2", "n3"), Boot: uint64(w.Choose(3))}
	for range w.Choose(4) {
		total := int64(w.Choose(40))
		op.Slices = append(op.Slices, &logv1.ClientSlice{
			Client: w.client(), Slice: int64(w.now/time.Second) + int64(w.Choose(5)-3),
			Total: total, Retries: min(total, int64(w.Choose(8))),
		})
	}
	return op
}

// admitted is a report of a session; what it says grows, stands still and falls
// back.
func (w *World) admitted() *logv1.ReportAdmitted {
	op := &logv1.ReportAdmitted{
		Session: LeaseID(pick(w, "s0", "s1", "s2")), Owner: w.owner(), Client: w.client(),
	}
	if !w.Tame && w.Choose(16) == 0 {
		op.Session = op.GetSession()[:8]
	}
	for range 1 + w.Choose(3) {
		c := w.charge()
		op.Counts = append(op.Counts, &logv1.AdmittedCount{
			Limit: c.GetLimit(), Key: c.GetKey(), Dimension: c.GetDimension(),
			Class: pick(w, "", "", "live", "batch"), Tokens: c.GetAmount() * int64(1+w.Choose(9)),
		})
	}
	return op
}

func (w *World) applyLimits() *logv1.ApplyLimits {
	op := &logv1.ApplyLimits{Author: w.owner(), Prune: w.Choose(32) == 0}
	for range w.Choose(3) {
		op.Limits = append(op.Limits, w.configure(w.limit()))
	}
	if w.Choose(6) == 0 {
		op.Delete = append(op.Delete, w.limit())
	}
	if w.Choose(4) == 0 {
		op.RetryBudgets = append(op.RetryBudgets, &logv1.RetryBudget{
			Name: pick(w, "b0", "b1"), Client: pick(w, "*", "team-*", "c1"), MaxRetries: 3, MaxFraction: 2000,
			Window: int64(pick(w, 5*time.Minute, 10*time.Minute, time.Minute)), MinRequests: int64(w.Choose(60)),
			RetryAfter: int64(time.Minute),
		})
	}
	return op
}

// configure is a random configuration of a limit.
func (w *World) configure(name string) *logv1.Limit {
	if w.Whole && w.Choose(3) == 0 {
		return w.counting()
	}
	limit := Limit(name)
	limit.Keyed = name >= "l2"
	if w.Whole {
		limit.Mode = pick(w, logv1.Mode_MODE_ENFORCE, logv1.Mode_MODE_ENFORCE, logv1.Mode_MODE_OFF,
			logv1.Mode_MODE_SHADOW, logv1.Mode_MODE_WARN)
		limit.MaxKeysPerClient = int64(w.Choose(3))
	}
	if w.Feedback {
		w.recovery(limit)
	}
	if !w.Tame && w.Choose(16) == 0 {
		limit.Keyed = !limit.Keyed
	}
	limit.MaxKeys = int64(3 + w.Choose(3))
	limit.Lease = int64(pick(w, time.Second, 5*time.Second, time.Hour))
	limit.Target = int64(pick(w, 10_000, 10_000, 7_500))
	limit.OnQuorumLoss = logv1.OnQuorumLoss(w.Choose(4))
	if share := int64(w.Choose(3)); share > 0 {
		share = (share - 1) * 2_500
		limit.FallbackShare = &share
	}
	if w.Choose(16) == 0 {
		limit.Unlimited = true
		return limit
	}
	for _, name := range []string{"requests", "tokens"} {
		if w.Choose(4) == 0 {
			continue
		}
		limit.Dimensions = append(limit.Dimensions, &logv1.Dimension{
			Name: name, Amount: int64(pick(w, 0, 1, 3, 10)),
			Interval: int64(pick(w, time.Second, time.Second, 7*time.Second, time.Minute)),
			Burst:    int64(pick(w, 1, 5, 10, 100)), MaxDebt: int64(pick(w, 0, 5, 50)), MaxOpen: int64(pick(w, 0, 5, 100)),
		})
	}
	if w.Escrow {
		w.lends(limit)
	}
	if w.Choose(3) == 0 {
		burst := int64(pick(w, 0, 3_000, 5_000))
		limit.Classes = append(limit.Classes, &logv1.Class{Name: "live", Share: 6_000, Burst: burst})
		if w.Choose(2) == 0 {
			limit.Classes = append(limit.Classes, &logv1.Class{Name: "batch", Share: int64(pick(w, 0, 4_000))})
		}
	}
	return limit
}
