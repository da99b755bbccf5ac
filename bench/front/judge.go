package front

import (
	"math"
	"slices"

	"github.com/quorlease/quorlease/bench/bound"
	"github.com/quorlease/quorlease/bench/stat"
)

// What the bounds are: in ms what a gateway adds to a call at p50 and p99, and how long a
// refusal takes; as parts what a storm adds to the p99 of others, by how much the gateway's
// memory changes in one, how much of a limit is used, and how much of that is refused.
const (
	addsMost50, addsMost99 = 0.15, 1.0
	refusalMost            = 1.0
	othersMost             = 1.25
	heapMost               = 0.1
	usedLeast, usedAim     = 0.9, 0.95
	throttledMost          = 0.001
)

func (r *Result) judge() {
	r.Bounds = slices.Concat(r.judgeCost(), r.judgeStorm(), r.judgeFill())
}

// spread is that of a figure of each round.
func spread[T any](rounds []T, of func(*T) float64) stat.Spread {
	values := make([]float64, len(rounds))
	for i := range rounds {
		values[i] = of(&rounds[i])
	}
	return stat.SpreadOf(values)
}

// figure is one of a side's.
type figure func(Timed) float64

func p50(t Timed) float64 { return t.P50 }
func p99(t Timed) float64 { return t.P99 }

// of is a side's figure in a round.
func (f figure) of(side string) func(*Round) float64 {
	return func(r *Round) float64 { return f((*r)[side]) }
}

func (r *Result) judgeCost() (bounds []bound.Bound) {
	adds := func(b bound.Bound, f figure, ours, beside string) {
		b.Unit = "ms"
		b.Ours = &bound.Term{Unit: "ms", Got: spread(r.Rounds, f.of(ours))}
		b.Beside = &bound.Term{Name: called[beside], Unit: "ms", Got: spread(r.Rounds, f.of(beside))}
		got := spread(r.Rounds, func(one *Round) float64 { return f((*one)[ours]) - f((*one)[beside]) })
		bounds = append(bounds, b.Judge(&got, "", !r.Hasty))
	}
	adds(bound.Bound{Bound: "gateway-p50", Most: new(addsMost50), Name: "gateway over a bare proxy, paced: more at p50"},
		p50, fronted, proxied)
	adds(bound.Bound{Bound: "gateway-p99", Most: new(addsMost99), Name: "gateway over a bare proxy, paced: more at p99"},
		p99, fronted, proxied)
	adds(bound.Bound{
		Bound: "gateway-slots-p50", Most: new(addsMost50), Name: "with slots, over callers that take them: more at p50",
	}, p50, slotted, committed)
	adds(bound.Bound{
		Bound: "gateway-slots-p99", Most: new(addsMost99), Name: "with slots, over callers that take them: more at p99",
	}, p99, slotted, committed)
	adds(bound.Bound{Bound: "gateway-busy-p50", Name: "as fast as all can: more at p50"}, p50, busyFronted, busyProxied)
	adds(bound.Bound{Bound: "gateway-busy-p99", Name: "as fast as all can: more at p99"}, p99, busyFronted, busyProxied)
	ratio := func(b bound.Bound, unit string, f figure) {
		b.Ours = &bound.Term{Unit: unit, Got: spread(r.Rounds, f.of(busyFronted))}
		b.Beside = &bound.Term{Name: "proxy", Unit: unit, Got: spread(r.Rounds, f.of(busyProxied))}
		got := spread(r.Rounds, func(one *Round) float64 { return f((*one)[busyFronted]) / f((*one)[busyProxied]) })
		bounds = append(bounds, b.Judge(&got, "", false))
	}
	ratio(bound.Bound{Bound: "gateway-busy-rate", Name: "as fast as all can: calls over those of a bare proxy"}, "/s",
		func(t Timed) float64 { return t.PerSecond })
	ratio(bound.Bound{
		Bound: "gateway-cpu", Name: "as fast as all can: processor time of a call over a bare proxy's",
	}, "us", func(t Timed) float64 { return *t.CPU })
	return bounds
}

func (r *Result) judgeStorm() (bounds []bound.Bound) {
	add := func(b bound.Bound, got stat.Spread) { bounds = append(bounds, b.Judge(&got, "", !r.Hasty)) }
	add(bound.Bound{
		Bound: "storm-refusals-p99", Unit: "ms", Most: new(refusalMost), Name: "a client storms: p99 of its refusals",
	}, spread(r.Storm.Pairs, func(p *Pair) float64 { return p.Refusals.P99 }))
	with := func(p *Pair) float64 { return p.With.P99 }
	without := func(p *Pair) float64 { return p.Without.P99 }
	add(bound.Bound{
		Bound: "storm-others-p99", Most: new(othersMost), Name: "a client storms: p99 of others, over that without it",
		Ours:   &bound.Term{Name: "with", Unit: "ms", Got: spread(r.Storm.Pairs, with)},
		Beside: &bound.Term{Name: "without", Unit: "ms", Got: spread(r.Storm.Pairs, without)},
	}, spread(r.Storm.Pairs, func(p *Pair) float64 { return with(p) / without(p) }))
	heap := bound.Bound{
		Bound: "storm-heap", Most: new(heapMost), Name: "a client storms: change of the gateway's live memory, as a part",
	}
	change, ok := r.Storm.change()
	if !ok {
		bounds = append(bounds, heap.Judge(nil, "it was looked at too seldom", !r.Hasty))
		return bounds
	}
	add(heap, stat.SpreadOf([]float64{change}))
	return bounds
}

// The memory is looked at when the client has stormed for a fifth of the time (2 of 10
// minutes), and then in eight parts of the rest (a minute each).
const (
	heapFrom  = 5
	heapParts = 8
)

// change is how far the memory was from what it was at first, in the part of the time in
// which that was most. It is false where there was nothing to be seen in some part.
func (s *Storm) change() (most float64, ok bool) {
	if len(s.Heap) == 0 {
		return 0, false
	}
	last := s.Heap[len(s.Heap)-1].At
	from := last / heapFrom
	var parts [heapParts][]float64
	for _, one := range s.Heap {
		if one.At >= from {
			i := int((one.At - from) / (last - from) * heapParts)
			parts[min(i, heapParts-1)] = append(parts[min(i, heapParts-1)], one.Collected)
		}
	}
	first := stat.SpreadOf(parts[0]).Median
	for _, part := range parts {
		if len(part) == 0 {
			return 0, false
		}
		most = max(most, math.Abs(stat.SpreadOf(part).Median/first-1))
	}
	return most, true
}

func (r *Result) judgeFill() (bounds []bound.Bound) {
	used := stat.SpreadOf(r.Fill.Used)
	bounds = append(bounds, bound.Bound{
		Bound: "fill-used", Least: new(usedLeast), Aim: new(usedAim), Name: "part of a provider's limit that is used",
	}.Judge(&used, "", !r.Hasty))
	refused := bound.Bound{
		Bound: "fill-throttled", Most: new(throttledMost), Name: "part of the calls that the provider refuses meanwhile",
	}
	if r.Fill.Calls == 0 {
		return append(bounds, refused.Judge(nil, "no call reached the provider", !r.Hasty))
	}
	throttled := stat.SpreadOf([]float64{float64(r.Fill.Throttled) / float64(r.Fill.Calls)})
	return append(bounds, refused.Judge(&throttled, "", !r.Hasty))
}
