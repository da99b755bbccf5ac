package page

import (
	"fmt"

	"github.com/quorlease/quorlease/bench/bound"
	"github.com/quorlease/quorlease/bench/stat"
)

// What the bounds are.
const (
	linearLeast = 0.8
	cpuMost     = 1.1
	// nodesMost is the largest cluster that is held to the two above.
	nodesMost = 5
	// generatorMost is how much of a processor the callers may use for the figures of
	// nodes to count.
	generatorMost = 0.5
	// thousand and million are the keys that are compared.
	thousand, million      = 1000, 1_000_000
	millionLeast, millionA = 0.4, 0.7
	pauseMost              = 10.0
	entriesMost            = 500.0
	// steadyLeast is the part of the rate that is asked for that has to be granted.
	steadyLeast = 0.95
)

// judge works out every figure.
func (r *Result) judge() []bound.Bound {
	bounds := []bound.Bound{}
	add := func(b bound.Bound, got *stat.Spread, why string, binds bool) {
		bounds = append(bounds, b.Judge(got, why, binds && !r.Settings.Hasty))
	}
	r.judgeNodes(add)
	r.judgeKeys(add)
	r.judgeEntries(add)
	r.judgeSnapshots(add)
	return bounds
}

// adding notes a figure, or why there is none, and whether it is held to its bound.
type adding func(b bound.Bound, got *stat.Spread, why string, binds bool)

func (r *Result) judgeNodes(add adding) {
	one, second := at(r.Nodes, 1), r.second()
	for i := range r.Nodes {
		p := &r.Nodes[i]
		binds := p.At <= nodesMost
		shared := func(b bound.Bound, got *stat.Spread) {
			// Nodes that take from one another what they use add nothing.
			if r.Settings.Share == 0 && !r.Settings.Hasty {
				add(b, nil, "nodes had no share of a processor each: "+r.Settings.Unshared, binds)
				return
			}
			add(b, got, "somebody was granted nothing in a round", binds)
		}
		if one != nil && p != one {
			shared(bound.Bound{
				Bound: fmt.Sprintf("nodes-%d-linear", p.At), Least: new(linearLeast),
				Name: fmt.Sprintf("%d nodes: grants a second over %d times those of one", p.At, p.At),
			}, p.linear(one))
			shared(bound.Bound{
				Bound: fmt.Sprintf("nodes-%d-cpu", p.At), Most: new(cpuMost),
				Name: fmt.Sprintf("%d nodes: processor time a grant over that of one", p.At),
			}, p.over(one, processor, 1))
		}
		if second != nil && p.At > second.At {
			shared(bound.Bound{
				Bound: fmt.Sprintf("nodes-%d-linear-on", p.At), Least: new(linearLeast),
				Name: fmt.Sprintf("%d nodes: grants a second, a node, over those of %d", p.At, second.At),
			}, p.linear(second))
			shared(bound.Bound{
				Bound: fmt.Sprintf("nodes-%d-cpu-on", p.At), Most: new(cpuMost),
				Name: fmt.Sprintf("%d nodes: processor time a grant over that of %d", p.At, second.At),
			}, p.over(second, processor, 1))
		}
	}
}

func (r *Result) judgeKeys(add adding) {
	few := at(r.Keys, thousand)
	for i := range r.Keys {
		p := &r.Keys[i]
		if p.At <= thousand {
			continue
		}
		why := "somebody was granted nothing in a round"
		if few == nil {
			why = grouped(thousand) + " keys were not run"
		}
		add(bound.Bound{
			Bound: fmt.Sprintf("keys-%d-rate", p.At), Least: new(millionLeast), Aim: new(millionA),
			Name: fmt.Sprintf("%s keys: grants a second over those of %s", grouped(p.At), grouped(thousand)),
		}, p.over(few, rate, 1), why, p.At == million)
		add(bound.Bound{
			Bound: fmt.Sprintf("keys-%d-gap", p.At), Unit: "ms", Most: new(pauseMost),
			Name: fmt.Sprintf("%s keys: longest time without a grant", grouped(p.At)),
		}, &p.Summary.Gap, "", p.At == million)
	}
}

// judgeEntries holds what a steady rate writes to the log. Where the machine does not give
// that rate there is nothing to be held.
func (r *Result) judgeEntries(add adding) {
	for i := range r.Entries {
		p := &r.Entries[i]
		b := bound.Bound{
			Bound: fmt.Sprintf("entries-%d", p.At), Unit: "/s", Most: new(entriesMost),
			Name: fmt.Sprintf("log entries at a steady %s grants a second on %s", number(r.Settings.Steady),
				counted(p.At, "bucket")),
		}
		if got := p.Summary.GrantsPerSecond.Median; got < steadyLeast*r.Settings.Steady {
			add(b, nil, fmt.Sprintf("there were only %s grants a second", number(got)), true)
			continue
		}
		add(b, &p.Summary.Entries, "", true)
	}
}

func (r *Result) judgeSnapshots(add adding) {
	for i := range r.Snapshots {
		s := &r.Snapshots[i]
		var got *stat.Spread
		if s.Taken > 0 {
			got = &stat.Spread{Median: s.PauseMost, Min: s.PauseMost, Max: s.PauseMost}
		}
		add(bound.Bound{
			Bound: fmt.Sprintf("snapshots-%d-pause", s.At), Unit: "ms", Most: new(pauseMost),
			Name: fmt.Sprintf("%s buckets: longest pause of applying for a snapshot", grouped(s.At)),
		}, got, "no snapshot was taken", true)
	}
}

// notes say under which conditions the figures were not those that the bounds are for.
func (r *Result) notes() []string {
	notes := []string{}
	note := func(p *Point, format string, values ...any) {
		notes = append(notes, counted(p.At, "node")+": "+fmt.Sprintf(format, values...))
	}
	if r.Settings.Unshared != "" && len(r.Nodes) > 0 {
		notes = append(notes, "nodes had no share of a processor each, so they share the machine and are held to no bound: "+
			r.Settings.Unshared)
	}
	for i := range r.Nodes {
		p := &r.Nodes[i]
		if used := p.Summary.Generator.Median; used > generatorMost {
			note(p, "the callers used %s of a processor, more than %s: they may be what was measured",
				number(used), number(generatorMost))
		}
		if need := float64(p.At)*r.Settings.Share + generatorMost; need > float64(r.Settings.Processors) {
			note(p, "their shares and the callers need %s processors, there are %d", number(need), r.Settings.Processors)
		}
		if used := stat.SpreadOf(p.each(cores)).Median; used < usedLeast*r.Settings.Share*float64(p.At) {
			note(p, "they used %s of a processor, less than their shares: nodes were not what was short", number(used))
		}
		if part := stat.SpreadOf(p.each(held)).Median; part < heldLeast {
			note(p, "%s of the grants came from escrow, the rest were entries of the log", number(part))
		}
	}
	return notes
}

// usedLeast is the part of their shares that all nodes should use.
const usedLeast = 0.9

// heldLeast is the part of the grants of nodes that should be from escrow.
const heldLeast = 0.99

// Missed says, a line each, which guarantee broke and which bound was missed.
func (r *Result) Missed() []string {
	s := r.Section()
	return s.Missed()
}
