package plot

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strconv"
)

//go:embed plot.html
var text string

// Template is a page that can show drawings, by {{template "plot" .}}, and that
// looks like the others, by {{template "style"}}.
func Template(name string, funcs template.FuncMap) *template.Template {
	t := template.New(name).Funcs(template.FuncMap{
		"px": func(at float64) string { return strconv.FormatFloat(at, 'f', 1, 64) },
	}).Funcs(funcs)
	return template.Must(t.Parse(text))
}

// partHeight is what a drawing takes in a picture, with its title.
const partHeight = plotHeight + 40

// Picture writes drawings below one another as one SVG file that needs nothing
// else. label says what it shows.
func Picture(w io.Writer, label string, drawings ...Drawing) error {
	type entry struct {
		Name, Class string
		X           float64
	}
	type part struct {
		Top     float64
		Drawing Drawing
		Legend  []entry
	}
	view := struct {
		Label  string
		Height int
		Parts  []part
	}{Label: label, Height: partHeight * len(drawings)}
	for i, d := range drawings {
		p := part{Top: float64(i*partHeight + partHeight - plotHeight), Drawing: d}
		for n, c := range d.Curves {
			p.Legend = append(p.Legend, entry{c.Name, c.Class, float64(plotRight - legendWidth*(len(d.Curves)-n))})
		}
		view.Parts = append(view.Parts, p)
	}
	if err := Template("", nil).ExecuteTemplate(w, "picture", view); err != nil {
		return fmt.Errorf("write the picture: %w", err)
	}
	return nil
}

// legendWidth is the place of a name in a picture.
const legendWidth = 120
