package page

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/quorlease/quorlease/bench/plot"
	"github.com/quorlease/quorlease/bench/storm"
)

// Amount is a figure's value with its unit, for people.
func Amount(f storm.Figure) string { return amount(f) }

func amount(f storm.Figure) string { return with(f, f.Value) }

func with(f storm.Figure, value float64) string {
	switch f.Unit {
	case "":
		return plot.Number(value)
	case "%":
		return plot.Number(value) + "%"
	default:
		return plot.Number(value) + " " + f.Unit
	}
}

// bounds says which values are accepted; nothing where all are.
func bounds(f storm.Figure) string {
	switch {
	case f.Low == nil && f.High == nil:
		return ""
	case f.Low == nil:
		return "at most " + with(f, *f.High)
	case f.High == nil:
		return "at least " + with(f, *f.Low)
	case *f.Low == *f.High:
		return "exactly " + with(f, *f.Low)
	default:
		return plot.Number(*f.Low) + " to " + with(f, *f.High)
	}
}

// Text writes the result for people.
func (r *Result) Text(w io.Writer) error {
	var out strings.Builder
	for _, g := range r.groups() {
		for _, o := range g.outcomes {
			fmt.Fprintf(&out, "%s: %s\n", o.Slug, o.Title)
		}
		out.WriteString("\n")
		table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
		head := ""
		for _, o := range g.outcomes {
			head += "\t" + o.Slug + "\taccepted"
		}
		fmt.Fprintln(table, head)
		for _, one := range g.rows() {
			line := one.Name
			for _, c := range one.Cells {
				text := c.Text
				if c.Missed {
					text += " MISSED"
				}
				line += "\t" + text + "\t" + c.Bounds
			}
			fmt.Fprintln(table, line)
		}
		if err := table.Flush(); err != nil {
			return fmt.Errorf("write the result: %w", err)
		}
		out.WriteString("\n")
		if err := g.writeClients(&out); err != nil {
			return err
		}
	}
	fmt.Fprintf(&out, "%d scenarios, seed %d: %s\n", len(r.Scenarios), r.Seed, r.verdict())
	if _, err := io.WriteString(w, trimmed(out.String())); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}

// trimmed has no blanks at the ends of lines.
func trimmed(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Join(lines, "\n")
}

func (r *Result) verdict() string {
	if n := len(r.Broken()); n > 0 {
		return fmt.Sprintf("%d figures are outside their range", n)
	}
	return "every figure is in its range"
}
