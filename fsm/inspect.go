package fsm

import (
	"math"
	"slices"
	"strings"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/escrow"
	"github.com/quorlease/quorlease/fsm/lineage"
	"github.com/quorlease/quorlease/fsm/record"
	"github.com/quorlease/quorlease/fsm/state"
)

// Report is what a session has reported to have admitted by itself. It must not
// be changed.
type Report = state.Report

// Inspection is one key of one limit, for people.
type Inspection struct {
	// Limit must not be changed.
	Limit *logv1.Limit
	Key   string
	// Seen: the key has buckets of its own; otherwise it is as one never seen.
	Seen bool
	// Now is the time that the levels are of.
	Now bucket.Instant
	// Starts and Ends are the window of a quota in Unix nanoseconds, 0 until the leader
	// has said which.
	Starts, Ends int64
	// Buckets are in the order of the limit's dimensions.
	Buckets []BucketView
	// Keys is how many the limit has, OpenLeases how many leases of this key are
	// not settled.
	Keys, OpenLeases int
	// Reports are what sessions have reported of the key, the latest first, at
	// most 100.
	Reports []*Report
	// Control is what feedback did to the key, nil for nothing. It must not be
	// changed.
	Control *record.Control
	// Escrow is what nodes hold of the key.
	Escrow []escrow.Outstanding
}

// BucketView is one bucket, in tokens; levels rounded down, debts up.
type BucketView struct {
	Dimension          string
	Level, Debt, Burst int64
	// The rate after target: Amount tokens an Interval.
	Amount   int64
	Interval time.Duration
	// Open is the tokens of unsettled leases that can still come back. Of slots it is
	// those that are held, which are more than Burst after that was lowered; Level is
	// those that are free.
	Open int64
	// Slack bounds by how much spending can trail debiting (G2); SlackTokens is
	// what the rate hands out in that time, rounded up. At a rate of zero there
	// is no such time, and Slack is the life of a lease.
	Slack       time.Duration
	SlackTokens int64
	Classes     []ClassView
}

// ClassView is one class of a bucket, in tokens.
type ClassView struct {
	// Name is empty for the unnamed class.
	Name                     string
	Level, Debt              int64
	SubBurst, EffectiveBurst int64
}

// Inspect shows a key at now, or at the machine's time where that is later. The
// error is a *Refused.
func (m *Machine) Inspect(now bucket.Instant, limit, key string) (*Inspection, error) {
	in, err := m.Glance(now, limit, key)
	if err != nil {
		return nil, err
	}
	in.Reports = m.state.ReportsOf(limit, key, maxReportsShown)
	return in, nil
}

// Glance is Inspect without reports, which takes as long however many there are.
func (m *Machine) Glance(now bucket.Instant, limit, key string) (*Inspection, error) {
	lim, err := m.liveLimit(limit, key)
	if err != nil {
		return nil, err
	}
	now = max(now, m.state.Now)
	t := m.targetOf(lim, key, m.state.FindKey(lim.ID, key))
	in := &Inspection{Limit: lim.Limit, Key: key, Seen: t.key != nil, Now: now, Keys: lim.Keys(), Control: t.control}
	in.Escrow = m.Escrow().Of(limit, key)
	if t.key != nil {
		in.OpenLeases = int(t.key.Leases)
	}
	in.Starts, in.Ends = lim.Now().Starts, lim.Now().Ends
	for i := range t.counts.Dimensions {
		d := &t.counts.Dimensions[i]
		if !d.Live() {
			continue
		}
		b := t.bucket(i, now)
		v := view(m.state, lim.Limit, d, &b, t.open(d.ID))
		if d.Kind == logv1.Kind_KIND_CONCURRENCY {
			v.Open = lim.InUse(key, now)
			v.Level = max(0, v.Burst-v.Open)
			v.Slack, v.SlackTokens, v.Classes = 0, 0, nil
		}
		in.Buckets = append(in.Buckets, v)
	}
	return in, nil
}

// open is what can come back to a dimension of the key.
func (t *target) open(dimension uint32) int64 {
	if t.key == nil {
		return 0
	}
	if i := t.lim.At(t.key.Passed).FindID(dimension); i >= 0 {
		return t.key.Held(i).Open
	}
	return 0
}

func view(s *state.State, limit *logv1.Limit, d *lineage.Dimension, b *bucket.Bucket, open int64) BucketView {
	v := BucketView{
		Dimension: d.Spec.GetName(), Level: b.Level(d.Shape), Burst: d.Shape.Burst(), Open: open,
	}
	v.Amount, v.Interval = lineage.Rate(d.Spec, d.Target)
	v.Slack, v.SlackTokens = lineage.Slack(limit, d, escrow.Life(s, limit, d))
	for class := range d.Shape.Classes() {
		debt := b.Debt(d.Shape, class)
		v.Debt += min(debt, math.MaxInt64-v.Debt)
		v.Classes = append(v.Classes, ClassView{
			Name: d.ClassName(class), Level: b.ClassLevel(d.Shape, class), Debt: debt,
			SubBurst: d.Shape.SubBurst(class), EffectiveBurst: d.Shape.EffectiveBurst(class),
		})
	}
	return v
}

// Peek says what an acquire would be answered at now, or at the machine's time
// where that is later. The lease id and track don't matter. The error is a
// *Refused. Nothing changes.
func (m *Machine) Peek(now bucket.Instant, op *logv1.Acquire) (*logv1.AcquireResult, error) {
	if err := checkNames(op); err != nil {
		return nil, err
	}
	p := &plan{}
	p.ask(op, max(now, m.state.Now))
	p.by.untracked = false
	if err := p.think(m, op.GetCharges()); err != nil {
		return nil, err
	}
	if len(p.denials) > 0 {
		return &p.denied().acquire, nil
	}
	a := p.granted()
	p.remaining(a, false)
	return &a.acquire, nil
}

// Limit is a configured limit, nil where there is none of the name. It must not be
// changed.
func (m *Machine) Limit(name string) *logv1.Limit {
	if lim := m.state.FindLimit(name); lim != nil {
		return lim.Limit
	}
	return nil
}

// Limits are the configured limits in the order of their names, and the retry
// budgets; with a name only those called so. They must not be changed.
func (m *Machine) Limits(name string) ([]*logv1.Limit, []*logv1.RetryBudget) {
	var limits []*logv1.Limit
	// The order does not matter: they are sorted below.
	for lim := range m.state.AllLimits() {
		if lim.Live() && (name == "" || lim.Name == name) {
			limits = append(limits, lim.Limit)
		}
	}
	slices.SortFunc(limits, func(a, b *logv1.Limit) int { return strings.Compare(a.GetName(), b.GetName()) })
	var budgets []*logv1.RetryBudget
	for _, b := range m.state.Budgets() {
		if name == "" || b.GetName() == name {
			budgets = append(budgets, b)
		}
	}
	return limits, budgets
}
