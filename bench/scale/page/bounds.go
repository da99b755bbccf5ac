package page

import (
	"fmt"

	"github.com/quorlease/quorlease/bench/report"
	"github.com/quorlease/quorlease/bench/stat"
)

// Bound is a figure that this program is held to, or aims at.
type Bound struct {
	Bound string `json:"bound"`
	Name  string `json:"name"`
	// Unit of the figures; empty for ratios.
	Unit string `json:"unit"`
	// Least or Most is the bound; neither: the figure is there to be read. Aim is what
	// would be good.
	Least *float64 `json:"least"`
	Most  *float64 `json:"most"`
	Aim   *float64 `json:"aim"`
	// Got is nil where it was not measured.
	Got *stat.Spread `json:"got"`
	// OK: the median keeps the bound, or there is nothing to keep.
	OK bool `json:"ok"`
}

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
	pauseMost              = 10
)

// judge works out every figure.
func (r *Result) judge() []Bound {
	bounds := []Bound{}
	add := func(b Bound, got *stat.Spread, binds bool) {
		if !binds || r.Settings.Hasty {
			b.Least, b.Most, b.Aim = nil, nil, nil
		}
		b.Got = got
		b.OK = got == nil || (b.Least == nil || got.Median >= *b.Least) && (b.Most == nil || got.Median <= *b.Most)
		bounds = append(bounds, b)
	}
	one, second := at(r.Nodes, 1), r.second()
	for i := range r.Nodes {
		p := &r.Nodes[i]
		binds := r.Settings.Share > 0 && p.At <= nodesMost
		least, most := linearLeast, cpuMost
		if one != nil && p != one {
			add(Bound{
				Bound: fmt.Sprintf("nodes-%d-linear", p.At), Least: &least,
				Name: fmt.Sprintf("%d nodes: grants a second over %d times those of one", p.At, p.At),
			}, p.linear(one), binds)
			add(Bound{
				Bound: fmt.Sprintf("nodes-%d-cpu", p.At), Most: &most,
				Name: fmt.Sprintf("%d nodes: processor time a grant over that of one", p.At),
			}, p.over(one, processor, 1), binds)
		}
		if second != nil && p.At > second.At {
			add(Bound{
				Bound: fmt.Sprintf("nodes-%d-linear-on", p.At), Least: &least,
				Name: fmt.Sprintf("%d nodes: grants a second, a node, over those of %d", p.At, second.At),
			}, p.linear(second), binds)
			add(Bound{
				Bound: fmt.Sprintf("nodes-%d-cpu-on", p.At), Most: &most,
				Name: fmt.Sprintf("%d nodes: processor time a grant over that of %d", p.At, second.At),
			}, p.over(second, processor, 1), binds)
		}
	}
	r.judgeKeys(add)
	r.judgeSnapshots(add)
	return bounds
}

func (r *Result) judgeKeys(add func(Bound, *stat.Spread, bool)) {
	few := at(r.Keys, thousand)
	for i := range r.Keys {
		p := &r.Keys[i]
		if p.At <= thousand {
			continue
		}
		least, aim, most := millionLeast, millionA, float64(pauseMost)
		add(Bound{
			Bound: fmt.Sprintf("keys-%d-rate", p.At), Least: &least, Aim: &aim,
			Name: fmt.Sprintf("%s keys: grants a second over those of %s", grouped(p.At), grouped(thousand)),
		}, p.over(few, rate, 1), p.At == million)
		add(Bound{
			Bound: fmt.Sprintf("keys-%d-gap", p.At), Unit: "ms", Most: &most,
			Name: fmt.Sprintf("%s keys: longest time without a grant", grouped(p.At)),
		}, &p.Summary.Gap, p.At == million)
	}
}

func (r *Result) judgeSnapshots(add func(Bound, *stat.Spread, bool)) {
	for i := range r.Snapshots {
		s := &r.Snapshots[i]
		most := float64(pauseMost)
		var got *stat.Spread
		if s.Taken > 0 {
			got = &stat.Spread{Median: s.PauseMost, Min: s.PauseMost, Max: s.PauseMost}
		}
		add(Bound{
			Bound: fmt.Sprintf("snapshots-%d-pause", s.At), Unit: "ms", Most: &most,
			Name: fmt.Sprintf("%s buckets: longest pause of applying for a snapshot", grouped(s.At)),
		}, got, true)
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

// bound says what the figure must be.
func (b *Bound) bound() string {
	var text string
	switch {
	case b.Least != nil:
		text = "≥ " + number(*b.Least)
	case b.Most != nil:
		text = "≤ " + number(*b.Most)
	default:
		return ""
	}
	if b.Unit != "" {
		text += " " + b.Unit
	}
	if b.Aim != nil {
		text += fmt.Sprintf(" (aim %s)", number(*b.Aim))
	}
	return text
}

// value is what it was.
func (b *Bound) value() string {
	if b.Got == nil {
		return "not measured"
	}
	unit := b.Unit
	if unit != "" {
		unit = " " + unit
	}
	return report.Spread(*b.Got, unit)
}

// verdict is one word.
func (b *Bound) verdict() string {
	switch {
	case b.Least == nil && b.Most == nil:
		return ""
	case b.Got == nil:
		return "not measured"
	case !b.OK:
		return "MISSED"
	default:
		return "kept"
	}
}

// Missed says, a line each, which guarantee broke and which bound was missed.
func (r *Result) Missed() (lines []string) {
	for _, c := range r.Checks {
		if !c.OK {
			lines = append(lines, fmt.Sprintf("%s broken, by %s: %s", c.Guarantee, c.By, c.Text))
		}
	}
	for i := range r.Bounds {
		if b := &r.Bounds[i]; !b.OK {
			lines = append(lines, fmt.Sprintf("%s: %s is not %s", b.Name, b.value(), b.bound()))
		}
	}
	return lines
}
