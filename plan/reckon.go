package plan

import (
	"math/big"
	"time"

	"github.com/quorlease/quorlease/fsm/bucket"
)

// windows are those that people put random delays into, in seconds.
var windows = []int64{2, 8, 60}

// Reckon answers a question. The error is a *QuestionError.
func Reckon(q Question) (*Answer, error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	a := &Answer{Live: q.Live.PerMinute(), Margin: MarginUnmeasured}
	for _, d := range q.Dimensions {
		a.Parts = append(a.Parts, q.part(d))
		if last := len(a.Parts) - 1; a.Parts[last].Tasks.Cmp(a.Parts[a.Binding].Tasks) < 0 {
			a.Binding = last
		}
	}
	a.Headroom = new(big.Rat).Sub(a.Parts[a.Binding].Tasks, a.Live)
	if q.ErrorP99 != nil {
		a.Margin, a.Measured = *q.ErrorP99, true
	}
	a.paces(q)
	a.spread(q.Clients)
	if q.Arrivals > 0 {
		var err error
		if a.WhatIf, err = q.whatIf(a.Parts, a.Binding); err != nil {
			return nil, err
		}
	}
	return a, nil
}

func (q *Question) part(d Dimension) Part {
	limit := d.Rate.PerMinute()
	p := Part{Dimension: d, Tasks: new(big.Rat).Quo(limit, ratio(d.Cost, 1))}
	p.AtTarget = new(big.Rat).Mul(p.Tasks, ratio(q.Target, bucket.Whole))
	p.Live = partOf(q.Live.PerMinute(), p.Tasks)
	if p.Worst = partOf(ratio(d.Burst, 1), limit); limit.Sign() > 0 {
		p.Worst.Add(p.Worst, ratio(q.Target, bucket.Whole))
	}
	return p
}

// partOf is which part some is of all, nil where it is part of nothing.
func partOf(some, all *big.Rat) *big.Rat {
	switch {
	case all.Sign() > 0:
		return new(big.Rat).Quo(some, all)
	case some.Sign() > 0:
		return nil
	}
	return new(big.Rat)
}

// paces works out every target once.
func (a *Answer) paces(q Question) {
	suggested := bucket.Whole - a.Margin
	for _, target := range []int64{q.Target, suggested, bucket.Whole} {
		known := false
		for i := range a.Paces {
			known = known || a.Paces[i].Target == target
		}
		if known {
			continue
		}
		p := Pace{Target: target, File: target == q.Target, Suggested: target == suggested}
		p.Tasks = new(big.Rat).Mul(a.Parts[a.Binding].Tasks, ratio(target, bucket.Whole))
		p.Backfill = new(big.Rat).Sub(p.Tasks, a.Live)
		if q.Tasks > 0 {
			p.ETA = seconds(q.Tasks, p.Backfill)
		}
		a.Paces = append(a.Paces, p)
	}
}

// seconds is how long so many take at a rate a minute, nil where that is none.
func seconds(tasks int64, perMinute *big.Rat) *big.Rat {
	if perMinute.Sign() <= 0 {
		return nil
	}
	return new(big.Rat).Quo(ratio(tasks*int64(time.Minute/time.Second), 1), perMinute)
}

func (a *Answer) spread(clients int64) {
	if clients == 0 {
		return
	}
	a.Jitter = seconds(clients, a.Headroom)
	var list []*big.Rat
	for _, w := range windows {
		list = append(list, ratio(w, 1))
	}
	if a.Jitter != nil {
		list = append(list, a.Jitter)
	}
	for _, w := range list {
		a.Spreads = append(a.Spreads, Spread{
			Window: w, PerSecond: new(big.Rat).Quo(ratio(clients, 1), w), Fits: a.Jitter != nil && w.Cmp(a.Jitter) >= 0,
		})
	}
}
