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

// Into is a document with the tables between the two lines that it has for them, or the
// tables with these lines where it has none.
func (s *Sheet) Into(document string) string {
	var tables strings.Builder
	// A Builder takes everything.
	_ = s.Markdown(&tables)
	between := begins + "\n\n" + tables.String() + "\n" + ends
	before, rest, found := strings.Cut(document, begins)
	if !found {
		return between + "\n"
	}
	_, after, found := strings.Cut(rest, ends)
	if !found {
		return between + "\n"
	}
	return before + between + after
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
