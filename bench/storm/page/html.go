package page

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"

	"github.com/quorlease/quorlease/bench/plot"
	"github.com/quorlease/quorlease/bench/storm"
)

//go:embed page.html
var text string

var document = template.Must(plot.Template("page", nil).Parse(text))

// HTML writes one page that needs nothing else: no script, no font, no network.
func (r *Result) HTML(w io.Writer) error {
	type section struct {
		Outcomes []each
		Rows     []row
		Drawing  *plot.Drawing
	}
	view := struct {
		*Result
		Verdict  string
		Missed   []string
		Sections []section
	}{Result: r, Verdict: r.verdict(), Missed: r.Broken()}
	// Who is in several groups is drawn in the first.
	drawn := make(map[*storm.Outcome]bool)
	for _, g := range r.groups() {
		s := section{Rows: g.rows()}
		for _, o := range g.outcomes {
			one := each{Outcome: o}
			if !drawn[o] {
				one, drawn[o] = eachOf(o), true
			}
			s.Outcomes = append(s.Outcomes, one)
		}
		if d, ok := g.draw(g.last().Title); ok {
			s.Drawing = &d
		}
		view.Sections = append(view.Sections, s)
	}
	if err := document.Execute(w, view); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

// Picture writes the calls at the provider of every scenario that has somebody
// beside it.
func (r *Result) Picture(w io.Writer) error {
	var drawings []plot.Drawing
	for _, g := range r.groups() {
		if d, ok := g.draw(g.last().Slug); ok && len(g.outcomes) > 1 {
			drawings = append(drawings, d)
		}
	}
	return plot.Picture(w, "Calls at the provider in each storm, before and after", drawings...)
}

// draw shows the calls at the provider: of the last one as a line of its own, of
// each before it as what was. ok is false where nobody called one.
func (g group) draw(title string) (d plot.Drawing, ok bool) {
	p := plot.Plot{Title: title, XLabel: "seconds", YLabel: "calls at the provider, a second", LogY: true}
	for i, o := range g.outcomes {
		if o.Timeline == nil {
			continue
		}
		s := plot.Series{Name: o.Slug, Class: "before"}
		switch {
		case i == len(g.outcomes)-1:
			s.Class = "quorlease"
		case i > 0:
			s.Class = "local"
		}
		slot := o.Timeline.SlotMS / 1000
		for at, n := range o.Timeline.Admitted {
			middle := (float64(at) + 0.5) * slot
			s.Points = append(s.Points, [2]float64{middle, float64(n+o.Timeline.Refused[at]) / slot})
			p.XMax = max(p.XMax, (float64(at)+1)*slot)
		}
		p.Series = append(p.Series, s)
	}
	if len(p.Series) == 0 {
		return plot.Drawing{}, false
	}
	return ticked(&p, p.XMax), true
}
