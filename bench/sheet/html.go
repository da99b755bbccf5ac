package sheet

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"

	"github.com/quorlease/quorlease/bench/bound"
	"github.com/quorlease/quorlease/bench/plot"
)

//go:embed page.html
var pageText string

var page = template.Must(plot.Template("page", template.FuncMap{
	"class": func(verdict string) string {
		return map[string]string{bound.Kept: "ok", bound.Missed: "bad", bound.NotThere: "bad"}[verdict]
	},
}).Parse(pageText))

// HTML writes one page that needs nothing else: no script, no font, no network.
func (s *Sheet) HTML(w io.Writer) error {
	type figureRow struct{ Name, Value, Must, Verdict, Of string }
	type part struct {
		*Section
		Figures []figureRow
		Kept    string
		Broken  int
	}
	view := struct {
		*Sheet
		Outcome, Class, Where string
		Alone                 bool
		Wrong                 []string
		Parts                 []part
	}{Sheet: s, Alone: len(s.Sections) == 1, Where: s.Place.text(s.Version), Wrong: s.Missed()}
	view.Outcome, view.Class = s.outcome()
	for i := range s.Sections {
		one := part{Section: &s.Sections[i], Kept: s.Sections[i].kept()}
		for n := range one.Bounds {
			b := &one.Bounds[n]
			one.Figures = append(one.Figures, figureRow{b.Name, b.Value(), b.Must(), b.Verdict(), of(b)})
		}
		for _, c := range one.Checks {
			if !c.OK {
				one.Broken++
			}
		}
		view.Parts = append(view.Parts, one)
	}
	if err := page.Execute(w, view); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}
