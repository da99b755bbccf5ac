package sheet

import (
	"fmt"
	"io"
	"strings"

	"github.com/quorlease/quorlease/bench/bound"
)

// The lines between which a document has the tables.
const (
	begins = "<!-- quorlease bench all: begins -->"
	ends   = "<!-- quorlease bench all: ends -->"
)

// errNoPlace: the tables would replace what is there.
var errNoPlace = fmt.Errorf("there is text, and no two lines for the tables: %s and %s", begins, ends)

// Fits says whether a document is empty or has the two lines.
func Fits(document string) error {
	_, rest, found := strings.Cut(document, begins)
	if document != "" && (!found || !strings.Contains(rest, ends)) {
		return errNoPlace
	}
	return nil
}

// Into is a document, which Fits, with the tables between its two lines; of an empty one
// the tables with these lines.
func (s *Sheet) Into(document string) string {
	var tables strings.Builder
	// A Builder takes everything.
	_ = s.Markdown(&tables)
	before, rest, _ := strings.Cut(document, begins)
	_, after, found := strings.Cut(rest, ends)
	if !found {
		after = "\n"
	}
	return before + begins + "\n\n" + tables.String() + "\n" + ends + after
}

// Markdown writes every figure that has a bound as a row of one table, and what a
// section has for documents.
func (s *Sheet) Markdown(w io.Writer) error {
	var out strings.Builder
	fmt.Fprintf(&out, "%s. Medians (lowest to highest).\n\n", s.Place.text(s.Version))
	row(&out, "figure", "Quorlease", "beside it", "ratio", "bound")
	row(&out, "---", "---", "---", "---", "---")
	for i := range s.Sections {
		section := &s.Sections[i]
		if section.Failed != "" {
			row(&out, section.Title, "FAILED: "+section.Failed, "", "", "")
		}
		for n := range section.Bounds {
			if b := &section.Bounds[n]; b.Must() != "" {
				documented(&out, b)
			}
		}
		if kept := section.kept(); kept != "" {
			row(&out, section.Title+": guarantees", kept, "", "", "")
		}
	}
	for i := range s.Sections {
		if t := s.Sections[i].Brief; t != nil {
			fmt.Fprintf(&out, "\n%s\n\n", t.Title)
			row(&out, t.Heads...)
			row(&out, strings.Split(strings.Repeat("--- ", len(t.Heads)-1)+"---", " ")...)
			for _, cells := range t.Rows {
				row(&out, cells...)
			}
		}
	}
	if _, err := io.WriteString(w, out.String()); err != nil {
		return fmt.Errorf("write the tables: %w", err)
	}
	return nil
}

// documented is a figure as a row.
func documented(out *strings.Builder, b *bound.Bound) {
	verdict := b.Must() + ", " + b.Verdict()
	if b.Got != nil && b.Ours != nil && b.Beside != nil {
		row(out, b.Name, b.Ours.Text(), b.Beside.Text(), b.Value(), verdict)
		return
	}
	row(out, b.Name, b.Value(), "", "", verdict)
}

// row is one of a table. A bar in a cell would end it.
func row(out *strings.Builder, cells ...string) {
	for _, cell := range cells {
		out.WriteString("| " + strings.ReplaceAll(cell, "|", "\\|") + " ")
	}
	out.WriteString("|\n")
}
