package sheet

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/quorlease/quorlease/bench/bound"
)

// heads are those of the table of figures.
var heads = []string{"figure", "measured", "bound", "", "of"}

// Text writes the sheet for people: what was measured first, all figures in one table
// at the end.
func (s *Sheet) Text(w io.Writer) error {
	var out strings.Builder
	alone := len(s.Sections) == 1
	if !alone {
		fmt.Fprintf(&out, "%s\n", s.Place.text(s.Version))
	}
	for i := range s.Sections {
		section := &s.Sections[i]
		if !alone {
			fmt.Fprintf(&out, "\n=== %s: %s\n", section.Section, section.Title)
		}
		for _, line := range section.Heading {
			fmt.Fprintf(&out, "%s\n", line)
		}
		if alone {
			fmt.Fprintf(&out, "%s\n", s.Place.text(s.Version))
		}
		section.text(&out)
	}
	s.figures(&out)
	if _, err := io.WriteString(w, out.String()); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}

// text is what was measured.
func (s *Section) text(out *strings.Builder) {
	if s.Failed != "" {
		fmt.Fprintf(out, "FAILED: %s\n", s.Failed)
	}
	for _, t := range s.Tables {
		fmt.Fprintf(out, "\n%s\n", t.Title)
		table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		for _, row := range append([][]string{t.Heads}, t.Rows...) {
			fmt.Fprintf(table, "  %s\n", strings.Join(row, "\t"))
		}
		_ = table.Flush() // a Builder takes everything
	}
	for _, l := range s.Lists {
		fmt.Fprintf(out, "\n%s\n", l.Title)
		for _, line := range l.Lines {
			fmt.Fprintf(out, "  %s\n", line)
		}
	}
	lines := s.Notes
	if kept := s.kept(); kept != "" {
		lines = append([]string{kept}, lines...)
	}
	if len(lines) > 0 {
		fmt.Fprintf(out, "\n%s\n", strings.Join(lines, "\n"))
	}
	for _, c := range s.Checks {
		if !c.OK {
			fmt.Fprintf(out, "%s BROKEN, by %s: %s\n", c.Guarantee, c.By, c.Text)
		}
	}
}

// figures is the one table.
func (s *Sheet) figures(out *strings.Builder) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	begun := false
	for i := range s.Sections {
		section := &s.Sections[i]
		if len(section.Bounds) == 0 {
			continue
		}
		if !begun {
			fmt.Fprintf(table, "\n%s\n", strings.Join(heads, "\t"))
			begun = true
		}
		if len(s.Sections) > 1 {
			// With as many cells as the others, so that all columns are one below the other.
			fmt.Fprintf(table, "%s%s\n", section.Section, strings.Repeat("\t", len(heads)-1))
		}
		for n := range section.Bounds {
			fmt.Fprintf(table, "  %s\n", strings.Join(figure(&section.Bounds[n]), "\t"))
		}
	}
	_ = table.Flush() // a Builder takes everything
}

// figure is a row of the table of figures.
func figure(b *bound.Bound) []string {
	return []string{b.Name, b.Value(), b.Must(), b.Verdict(), of(b)}
}

// of is what a ratio was made of, in medians.
func of(b *bound.Bound) string {
	if b.Ours == nil || b.Beside == nil {
		return ""
	}
	return b.Ours.Median() + " over " + b.Beside.Median()
}
