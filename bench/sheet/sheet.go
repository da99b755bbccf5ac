package sheet

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/quorlease/quorlease/bench/bound"
	"github.com/quorlease/quorlease/bench/plot"
	"github.com/quorlease/quorlease/bench/report"
)

// Sheet is what is shown together.
type Sheet struct {
	// Title is the command that measured.
	Title, Version string
	Place          Place
	Sections       []Section
}

// Section is what one measure came to.
type Section struct {
	// Section is its slug, Title what it is about.
	Section, Title string
	// Heading says in some lines what was run. Hasty: too short for any figure to say
	// something.
	Heading []string
	Hasty   bool
	Tables  []Table
	Bars    []plot.BarsDrawing
	Plots   []plot.Drawing
	Bounds  []bound.Bound
	// Checks of guarantees, over whole histories.
	Checks []report.Check
	Lists  []List
	Notes  []string
	// Failed says why there is nothing else. Empty: there is.
	Failed string
	// Brief is what a document shows of it beside the bounds. Nil: nothing.
	Brief *Table
}

// Table has a head for each column.
type Table struct {
	Title string
	Heads []string
	Rows  [][]string
}

// List is some lines below a title.
type List struct {
	Title string
	Lines []string
}

// Missed says, a line each, what is not as it must be: a part that came to nothing, a
// guarantee that broke, a bound that was missed.
func (s *Section) Missed() (lines []string) {
	if s.Failed != "" {
		lines = append(lines, s.Section+": "+s.Failed)
	}
	for _, c := range s.Checks {
		if !c.OK {
			lines = append(lines, fmt.Sprintf("%s broken, by %s: %s", c.Guarantee, c.By, c.Text))
		}
	}
	return append(lines, bound.Lines(s.Bounds)...)
}

// kept is what became of the guarantees, in a line; empty where none was looked at.
func (s *Section) kept() string {
	broken := 0
	var names []string
	for _, c := range s.Checks {
		if !c.OK {
			broken++
		}
		if !slices.Contains(names, c.Guarantee) {
			names = append(names, c.Guarantee)
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	all := names[0]
	if last := len(names) - 1; last > 0 {
		all = strings.Join(names[:last], ", ") + " and " + names[last]
	}
	if broken > 0 {
		return fmt.Sprintf("%d of %d checks of %s FAILED", broken, len(s.Checks), all)
	}
	return fmt.Sprintf("%s held in all of %d checks, over whole histories", all, len(s.Checks))
}

// Missed is that of all sections.
func (s *Sheet) Missed() (lines []string) {
	for i := range s.Sections {
		lines = append(lines, s.Sections[i].Missed()...)
	}
	return lines
}

// hasty: no figure of it says anything.
func (s *Sheet) hasty() bool {
	for i := range s.Sections {
		if s.Sections[i].Hasty {
			return true
		}
	}
	return false
}

// outcome is a word or some, and the class of its colour.
func (s *Sheet) outcome() (text, class string) {
	switch {
	case len(s.Missed()) > 0:
		return "not everything was kept", "bad"
	case s.hasty():
		return "too short to say", ""
	default:
		return "every bound was kept", "ok"
	}
}

// JSON writes a result as one object, as every bench does.
func JSON(w io.Writer, result any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(result); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}
