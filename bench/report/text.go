package report

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/quorlease/quorlease/bench/plot"
	"github.com/quorlease/quorlease/bench/stat"
)

// JSON writes the result as one object.
func (r *Result) JSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(r); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}

// row is one line of the table: both sides, each a middle and its ends.
type row struct{ name, quorlease, echo string }

// rows are the table, without its head.
func (r *Result) rows() []row {
	var rows []row
	add := func(name string, of func(*Summary) string, both bool) {
		one := row{name: name, quorlease: of(&r.Quorlease)}
		if r.Echo != nil && both {
			one.echo = of(r.Echo)
		}
		rows = append(rows, one)
	}
	add("decisions/s", func(s *Summary) string { return spread(s.DecisionsPerSecond, "") }, true)
	add("grants/s", func(s *Summary) string { return spread(s.GrantsPerSecond, "") }, false)
	if r.Quorlease.Escrow > 0 {
		add("granted from escrow", func(s *Summary) string { return grouped(s.Escrow) }, false)
	}
	add("denied", func(s *Summary) string { return grouped(s.Denied) }, false)
	add("failed", func(s *Summary) string { return grouped(s.Failed) }, true)
	if r.Settings.Path == "client" || r.Settings.Path == "limiter" {
		add("decided by the client itself", func(s *Summary) string { return grouped(s.Local) }, false)
	}
	if r.Settings.OfferedRate > 0 {
		add("due and not answered at the end", func(s *Summary) string { return grouped(s.Backlog) }, true)
	}
	add("p50", func(s *Summary) string { return spread(s.P50, " ms") }, true)
	add("p99", func(s *Summary) string { return spread(s.P99, " ms") }, true)
	add("p99.9", func(s *Summary) string { return spread(s.P999, " ms") }, true)
	add("longest", func(s *Summary) string { return spread(s.Max, " ms") }, true)
	add("fairness over callers (Jain)", func(s *Summary) string { return spread(s.Fairness, "") }, true)
	add("servers' processor time a decision", func(s *Summary) string {
		if s.CPU == nil {
			return "not known"
		}
		return spread(*s.CPU, " us")
	}, true)
	if r.Ratio != nil {
		rows = append(rows, row{name: "decisions over echoes", quorlease: spread(*r.Ratio, "")})
	}
	return rows
}

// heading is what was run, in one line.
func (r *Result) heading() string {
	s := r.Settings
	loop := "closed loop"
	if s.OfferedRate > 0 {
		loop = fmt.Sprintf("open loop, %s arrivals of %s/s", s.Arrivals, number(s.OfferedRate))
	}
	keys := "1 key"
	if s.Keys > 1 {
		keys = fmt.Sprintf("%d keys (%s)", s.Keys, s.Distribution)
	}
	where := "given endpoints"
	if s.Nodes > 0 {
		where = fmt.Sprintf("%d node processes of its own", s.Nodes)
	}
	rounds := "1 round"
	if s.Rounds != 1 {
		rounds = fmt.Sprintf("%d rounds", s.Rounds)
	}
	return fmt.Sprintf("%d callers over %s by %s, %s; %s of %s s; %s, %d processors, %s",
		s.Callers, keys, s.Path, loop, rounds, number(s.LengthMS/1000), where, s.Processor, s.Platform)
}

// limits is what each key has.
func (r *Result) limits() string {
	exact := ""
	if r.Settings.Exact {
		exact = ", exact"
	}
	return fmt.Sprintf("each key has %d tokens/s and a burst of %d%s; slack %s s", r.Settings.LimitRate,
		r.Settings.LimitBurst, exact, number(r.Settings.SlackMS/1000))
}

// Text writes the result for people.
func (r *Result) Text(w io.Writer) error {
	var out strings.Builder
	fmt.Fprintf(&out, "%s\n%s\n\n", r.heading(), r.limits())
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	head := "median (min to max)\tquorlease"
	if r.Echo != nil {
		head += "\tbare gRPC echo"
	}
	fmt.Fprintln(table, head)
	for _, one := range r.rows() {
		line := one.name + "\t" + one.quorlease
		if one.echo != "" {
			line += "\t" + one.echo
		}
		fmt.Fprintln(table, line)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	r.tail(&out)
	if _, err := io.WriteString(w, out.String()); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}

// tail is what follows the table.
func (r *Result) tail(out *strings.Builder) {
	if len(r.Failures) > 0 {
		out.WriteString("\nfailed calls by reason\n")
		for _, reason := range slices.Sorted(maps.Keys(r.Failures)) {
			fmt.Fprintf(out, "  %d %s\n", r.Failures[reason], reason)
		}
	}
	if len(r.Faults) > 0 {
		out.WriteString("\nwhat was done to the nodes\n")
		for _, f := range r.Faults {
			fmt.Fprintf(out, "  %7.2f s  %s\n", f.AtMS/1000, f.What)
		}
	}
	if len(r.Checks) > 0 {
		out.WriteString("\nguarantees\n")
		for _, c := range r.Checks {
			fmt.Fprintf(out, "  %s  %s by %s: %s\n", verdict(c.OK, "BROKEN"), c.Guarantee, c.By, c.Text)
		}
	}
	if len(r.Bounds) > 0 {
		out.WriteString("\nbounds\n")
		for _, b := range r.Bounds {
			fmt.Fprintf(out, "  %s  --%s %s: %s\n", verdict(b.OK, "MISSED"), b.Flag, number(b.Want), number(b.Got))
		}
	}
}

func verdict(ok bool, otherwise string) string {
	if ok {
		return "ok    "
	}
	return otherwise
}

func spread(s stat.Spread, unit string) string { return plot.Spread(s, unit) }

func number(f float64) string { return plot.Number(f) }

func grouped(n int64) string { return plot.Grouped(n) }
