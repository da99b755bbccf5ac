package page

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/quorlease/quorlease/bench/plot"
	"github.com/quorlease/quorlease/bench/report"
	"github.com/quorlease/quorlease/bench/sheet"
	"github.com/quorlease/quorlease/bench/stat"
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

// table is the sides of a group; no rows: there is none.
func (r *Result) table(g group) sheet.Table {
	t := sheet.Table{
		Title: g.Title,
		Heads: []string{"", "decisions/s", "p50 ms", "p99 ms", "server CPU us", "over echo", "denied", "failed"},
	}
	beside := r.side(g.echo)
	for i := range r.Sides {
		side := &r.Sides[i]
		if side.Kind != g.Kind {
			continue
		}
		s := &side.Summary
		over := ""
		if beside != nil && beside != side {
			over = overEcho(side, beside)
		}
		t.Rows = append(t.Rows, []string{
			side.Name, plot.Spread(s.DecisionsPerSecond, ""), plot.Spread(s.P50, ""), plot.Spread(s.P99, ""), cost(s), over,
			grouped(s.Denied), grouped(s.Failed),
		})
	}
	return t
}

// overEcho is the ratio to the echo, round by round; empty where the echo has none.
func overEcho(side, beside *Side) string {
	var ratios []float64
	for n := range min(len(side.Rounds), len(beside.Rounds)) {
		below := beside.Rounds[n].DecisionsPerSecond
		if below <= 0 {
			return ""
		}
		ratios = append(ratios, side.Rounds[n].DecisionsPerSecond/below)
	}
	return plot.Spread(stat.SpreadOf(ratios), "")
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

// versions names the programs that were compared with.
func (r *Result) versions() string {
	var all []string
	for i := range r.Sides {
		if version := r.Sides[i].SystemVersion; version != "" && !slices.Contains(all, version) {
			all = append(all, version)
		}
	}
	return strings.Join(all, ", ")
}

// Section is the comparison as a part of a sheet.
func (r *Result) Section() sheet.Section {
	s := sheet.Section{
		Section: "compare", Title: "Beside what people run today", Heading: []string{r.heading()}, Hasty: r.Settings.Hasty,
		Bounds: r.Bounds, Checks: r.Checks, Brief: r.brief(),
	}
	if versions := r.versions(); versions != "" {
		s.Heading = append(s.Heading, "beside "+versions)
	}
	for _, g := range r.groups() {
		t := r.table(g)
		if len(t.Rows) == 0 {
			continue
		}
		s.Tables, s.Bars = append(s.Tables, t), append(s.Bars, r.rates(g))
		if g.echo != "" {
			s.Plots = append(s.Plots, r.byPercentile(g))
		}
	}
	if len(r.Sides) > 0 {
		s.Bars = append(s.Bars, r.processorTime())
	}
	if len(r.Trials) > 0 {
		s.Tables = append(s.Tables, r.trials())
	}
	var missing, failures []string
	for i := range r.Missing {
		missing = append(missing, r.Missing[i].line())
	}
	for i := range r.Sides {
		side := &r.Sides[i]
		for _, reason := range slices.Sorted(maps.Keys(side.Failures)) {
			failures = append(failures, fmt.Sprintf("%s: %s by %s", side.Name, grouped(side.Failures[reason]), reason))
		}
	}
	for _, l := range []sheet.List{{Title: "not measured", Lines: missing}, {Title: "failed calls", Lines: failures}} {
		if len(l.Lines) > 0 {
			s.Lists = append(s.Lists, l)
		}
	}
	return s
}

func (r *Result) sheet() *sheet.Sheet {
	return &sheet.Sheet{
		Title: "quorlease bench compare", Version: r.Version, Place: r.Settings.Place, Sections: []sheet.Section{r.Section()},
	}
}

// Text writes the result for people.
func (r *Result) Text(w io.Writer) error { return r.sheet().Text(w) }

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

// trials is what became of everybody who was killed.
func (r *Result) trials() sheet.Table {
	first := &r.Trials[0]
	t := sheet.Table{
		Title: fmt.Sprintf("kill -9 of every process after %d buckets of %s tokens, %s a second, were emptied",
			first.Keys, grouped(first.Burst), grouped(first.PerSecond)),
		Heads: []string{"", "an answer is in", "and on disk", "over-admitted", ""},
	}
	for i := range r.Trials {
		one := &r.Trials[i]
		t.Rows = append(t.Rows, []string{one.Name, one.Copies, one.Disk, one.outcome(), one.how()})
	}
	return t
}

// cost is the servers' processor time.
func cost(s *report.Summary) string {
	if s.CPU == nil {
		return "not known"
	}
	return plot.Spread(*s.CPU, "")
}

// brief is what a document shows: a row a side, medians only.
func (r *Result) brief() *sheet.Table {
	if len(r.Sides) == 0 {
		return nil
	}
	over := map[string]string{}
	for i := range r.Trials {
		over[r.Trials[i].Trial] = r.Trials[i].outcome()
	}
	t := &sheet.Table{
		Title: r.heading() + "; beside " + r.versions() + ":",
		Heads: []string{
			"a decision", "per second", "p50 ms", "p99 ms", "servers' processor time", "over-admitted after kill -9",
		},
	}
	for i := range r.Sides {
		side := &r.Sides[i]
		s := &side.Summary
		micros, killed := "not known", over[side.System]
		if s.CPU != nil {
			micros = number(s.CPU.Median) + " us"
		}
		name := side.Name
		if side.System == own {
			killed = over[ConsensusTrial]
			if strings.HasPrefix(side.Side, EscrowTrial) {
				killed = over[EscrowTrial]
			}
			name = "**" + name + "**"
		}
		if side.Kind == Paced {
			name += ", paced"
		}
		t.Rows = append(t.Rows, []string{
			name, number(s.DecisionsPerSecond.Median), number(s.P50.Median), number(s.P99.Median), micros, killed,
		})
	}
	return t
}

func number(f float64) string { return plot.Number(f) }

func grouped(n int64) string { return plot.Grouped(n) }
