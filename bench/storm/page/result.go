package page

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/quorlease/quorlease/bench/storm"
)

// Result is one run of storms. Its JSON is documented in docs/reference/bench.md:
// a field is added, never renamed.
type Result struct {
	// Version of the program that was run.
	Version   string           `json:"version"`
	Seed      uint64           `json:"seed"`
	Scenarios []*storm.Outcome `json:"scenarios"`
	// OK: every figure of every scenario is in its range.
	OK bool `json:"ok"`
}

// Sum fills in OK.
func (r *Result) Sum() { r.OK = len(r.Broken()) == 0 }

// Broken says, a line each, which figure is out of its range.
func (r *Result) Broken() (lines []string) {
	for _, o := range r.Scenarios {
		for _, f := range o.Missed() {
			lines = append(lines, fmt.Sprintf("%s: %s: got %s, want %s", o.Slug, f.Name, amount(f), bounds(f)))
		}
	}
	return lines
}

// JSON writes the result as one object.
func (r *Result) JSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(r); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}

// group is what is seen side by side: a scenario and what it was before, those
// before first.
type group struct{ outcomes []*storm.Outcome }

// last is the scenario that the group is about.
func (g group) last() *storm.Outcome { return g.outcomes[len(g.outcomes)-1] }

// groups are the scenarios that have somebody beside them, and then those that
// stand alone.
func (r *Result) groups() (all []group) {
	shown := make(map[string]bool)
	for _, o := range r.Scenarios {
		if len(o.Twins) == 0 {
			continue
		}
		var g group
		for _, slug := range o.Twins {
			if twin := r.find(slug); twin != nil {
				g.outcomes = append(g.outcomes, twin)
				shown[slug] = true
			}
		}
		g.outcomes = append(g.outcomes, o)
		shown[o.Slug] = true
		all = append(all, g)
	}
	// What is all in another group is shown there.
	groups := slices.Clone(all)
	all = slices.DeleteFunc(all, func(g group) bool {
		return slices.ContainsFunc(groups, func(other group) bool {
			return len(other.outcomes) > len(g.outcomes) && !slices.ContainsFunc(g.outcomes, func(o *storm.Outcome) bool {
				return !slices.Contains(other.outcomes, o)
			})
		})
	})
	for _, o := range r.Scenarios {
		if !shown[o.Slug] {
			all = append(all, group{[]*storm.Outcome{o}})
		}
	}
	return all
}

func (r *Result) find(slug string) *storm.Outcome {
	at := slices.IndexFunc(r.Scenarios, func(o *storm.Outcome) bool { return o.Slug == slug })
	if at < 0 {
		return nil
	}
	return r.Scenarios[at]
}

// row is one figure of everybody in a group.
type row struct {
	Name  string
	Cells []cell
}

type cell struct {
	Text, Bounds string
	Missed       bool
}

// rows are the figures of a group: those of the scenario that it is about first,
// then what only the others have.
func (g group) rows() (rows []row) {
	var measures []storm.Measure
	for _, o := range slices.Backward(g.outcomes) {
		for _, f := range o.Figures {
			if !slices.Contains(measures, f.Measure) {
				measures = append(measures, f.Measure)
			}
		}
	}
	for _, m := range measures {
		var one row
		for _, o := range g.outcomes {
			f, ok := o.Figure(m)
			if !ok {
				one.Cells = append(one.Cells, cell{})
				continue
			}
			one.Name = f.Name
			one.Cells = append(one.Cells, cell{Text: amount(f), Bounds: bounds(f), Missed: !f.OK})
		}
		rows = append(rows, one)
	}
	return rows
}
