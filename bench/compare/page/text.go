package page

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/quorlease/quorlease/bench/plot"
	"github.com/quorlease/quorlease/bench/report"
)

// group is the sides of one kind.
type group struct {
	Kind  Kind
	Title string
	// echo is the side that the others are shown as a part of.
	echo string
}

func (r *Result) groups() []group {
	return []group{
		{Unary, "a call a decision", "echo-unary"},
		{Stream, "many callers' questions travel together", "echo-stream"},
		{Paced, "the same, paced: " + number(r.Settings.PacedRate) + "/s in an open loop", ""},
	}
}

// row is a side as it is shown.
type row struct{ Name, Rate, P50, P99, CPU, Echo, Failed string }

// heads are what stands above.
var heads = []string{"decisions/s", "p50 ms", "p99 ms", "server CPU us", "over echo", "failed"}

func (r row) cells() []string { return []string{r.Rate, r.P50, r.P99, r.CPU, r.Echo, r.Failed} }

// rows are the sides of a group.
func (r *Result) rows(g group) (rows []row) {
	echo := r.side(g.echo)
	for i := range r.Sides {
		side := &r.Sides[i]
		if side.Kind != g.Kind {
			continue
		}
		s := &side.Summary
		one := row{
			Name: side.Name, Rate: report.Spread(s.DecisionsPerSecond, ""), P50: report.Spread(s.P50, ""),
			P99: report.Spread(s.P99, ""), CPU: "not known", Failed: grouped(s.Failed),
		}
		if s.CPU != nil {
			one.CPU = report.Spread(*s.CPU, "")
		}
		if echo != nil && echo != side {
			if ratio := over(side, echo, perSecond); ratio != nil {
				one.Echo = report.Spread(*ratio, "")
			}
		}
		rows = append(rows, one)
	}
	return rows
}

// heading is what was run, in one line.
func (r *Result) heading() string {
	s := &r.Settings
	rounds := "1 round"
	if s.Rounds != 1 {
		rounds = fmt.Sprintf("%d interleaved rounds", s.Rounds)
	}
	hasty := ""
	if s.Hasty {
		hasty = "; too short for any figure to say something"
	}
	return fmt.Sprintf("%d callers over %d keys (%s), one token a question; median of %s of %s s (lowest to highest)%s",
		s.Callers, s.Keys, s.Distribution, rounds, number(s.LengthMS/1000), hasty)
}

// place is where and when.
func (r *Result) place() string {
	s := &r.Settings
	machine := s.Machine
	if machine != "" {
		machine += ", "
	}
	return fmt.Sprintf("%s; %s%d processors for servers and callers together, %s; quorlease %s",
		s.Date, machine, s.Processors, s.Platform, r.Version)
}

// versions names the programs that were compared with.
func (r *Result) versions() string {
	var all []string
	for i := range r.Sides {
		if side := &r.Sides[i]; side.SystemVersion != "" {
			all = append(all, side.SystemVersion)
		}
	}
	return strings.Join(slices.Compact(all), ", ")
}

// Text writes the result for people.
func (r *Result) Text(w io.Writer) error {
	var out strings.Builder
	fmt.Fprintf(&out, "%s\n%s\n", r.heading(), r.place())
	if versions := r.versions(); versions != "" {
		fmt.Fprintf(&out, "beside %s\n", versions)
	}
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	for _, g := range r.groups() {
		rows := r.rows(g)
		if len(rows) == 0 {
			continue
		}
		fmt.Fprintf(table, "\n%s\t%s\n", g.Title, strings.Join(heads, "\t"))
		for _, one := range rows {
			fmt.Fprintf(table, "  %s\t%s\n", one.Name, strings.Join(one.cells(), "\t"))
		}
		if err := table.Flush(); err != nil {
			return fmt.Errorf("write the result: %w", err)
		}
	}
	r.textTrials(&out)
	r.textBounds(&out)
	r.textFailures(&out)
	if len(r.Missing) > 0 {
		out.WriteString("\nnot measured\n")
		for _, m := range r.Missing {
			fmt.Fprintf(&out, "  %s\n", m.line())
		}
	}
	if _, err := io.WriteString(w, out.String()); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}

// line says which it is, why, and how to get it.
func (m *Missing) line() string {
	if m.How == "" {
		return m.System + ": " + m.Why
	}
	return fmt.Sprintf("%s: %s; get it by: %s", m.System, m.Why, m.How)
}

// outcome is what became of a trial.
func (t *Trial) outcome() string {
	if t.Failed != "" {
		return "not measured: " + t.Failed
	}
	return grouped(t.Over)
}

// how is what was done in it.
func (t *Trial) how() string {
	if t.Failed != "" {
		return ""
	}
	text := fmt.Sprintf("%s granted, killed, %s more", grouped(t.Before), grouped(t.After))
	if t.Escrow > 0 {
		text += fmt.Sprintf(" (%s of all from escrow)", grouped(t.Escrow))
	}
	return text
}

// trialHeading says what all of them have in common.
func (r *Result) trialHeading() string {
	if len(r.Trials) == 0 {
		return ""
	}
	t := &r.Trials[0]
	return fmt.Sprintf("kill -9 of every process after %d buckets of %s tokens, %s a second, were emptied",
		t.Keys, grouped(t.Burst), grouped(t.PerSecond))
}

func (r *Result) textTrials(out *strings.Builder) {
	if len(r.Trials) == 0 {
		return
	}
	fmt.Fprintf(out, "\n%s\n", r.trialHeading())
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "  \tan answer is in\tand on disk\tover-admitted\t")
	for i := range r.Trials {
		t := &r.Trials[i]
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\t%s\n", t.Name, t.Copies, t.Disk, t.outcome(), t.how())
	}
	table.Flush()
}

func (r *Result) textBounds(out *strings.Builder) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\nlike with like, round by round\t\tbound\t")
	for i := range r.Bounds {
		b := &r.Bounds[i]
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\n", b.Name, b.value(), b.bound(), b.verdict())
	}
	table.Flush()
}

func (r *Result) textFailures(out *strings.Builder) {
	for i := range r.Sides {
		side := &r.Sides[i]
		for _, reason := range slices.Sorted(maps.Keys(side.Failures)) {
			fmt.Fprintf(out, "\n%s: %s calls failed by %s\n", side.Name, grouped(side.Failures[reason]), reason)
		}
	}
}

func number(f float64) string { return plot.Number(f) }

func grouped(n int64) string { return plot.Grouped(n) }
