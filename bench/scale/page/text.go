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
	"github.com/quorlease/quorlease/bench/stat"
)

// table is one part as it is shown.
type table struct {
	Title string
	Heads []string
	Rows  [][]string
}

// tables are the parts that were run.
func (r *Result) tables() (all []table) {
	for _, t := range []table{r.nodesTable(), r.keysTable(), r.callersTable(), r.snapshotsTable()} {
		if len(t.Rows) > 0 {
			all = append(all, t)
		}
	}
	return all
}

// ratio is a spread that may not be there.
func ratio(s *stat.Spread) string {
	if s == nil {
		return ""
	}
	return report.Spread(*s, "")
}

// cost is the nodes' processor time.
func (s *Summary) cost() string {
	if s.CPU == nil {
		return "not known"
	}
	return report.Spread(*s.CPU, "")
}

func (r *Result) nodesTable() table {
	one, second := at(r.Nodes, 1), r.second()
	from := "from the second on"
	if second != nil {
		from = fmt.Sprintf("from %d on", second.At)
	}
	t := table{
		Title: "nodes, " + r.sharing(),
		Heads: []string{
			"nodes", "grants/s", "over linear", from, "node CPU us", "busiest node's cores", "entries/s",
			"p50 ms", "p99 ms", "callers' cores", "failed",
		},
	}
	for i := range r.Nodes {
		p := &r.Nodes[i]
		s := &p.Summary
		onward := ""
		if second != nil && p.At > second.At {
			onward = ratio(p.linear(second))
		}
		t.Rows = append(t.Rows, []string{
			p.members(), report.Spread(s.GrantsPerSecond, ""), ratio(p.linear(one)), onward, s.cost(),
			report.Spread(s.Busiest, ""), report.Spread(s.Entries, ""),
			report.Spread(s.P50, ""), report.Spread(s.P99, ""), report.Spread(s.Generator, ""), grouped(s.Failed),
		})
	}
	return t
}

// members are those of a cluster.
func (p *Point) members() string {
	text := fmt.Sprintf("%d: %s", p.At, counted(int64(p.Voters), "voter"))
	if p.Learners > 0 {
		text += ", " + counted(int64(p.Learners), "learner")
	}
	return text
}

func counted(n int64, what string) string {
	if n != 1 {
		what += "s"
	}
	return grouped(n) + " " + what
}

// sharing is what each node had.
func (r *Result) sharing() string {
	if r.Settings.Share > 0 {
		return number(r.Settings.Share*100) + " % of a processor each" + each(r.Nodes)
	}
	return "without a share of a processor each" + each(r.Nodes)
}

// each is the load a node.
func each(points []Point) string {
	if len(points) == 0 {
		return ""
	}
	p := &points[0]
	return fmt.Sprintf("; %d callers a node over %s by sessions to all nodes", p.Callers/max(1, int(p.At)),
		counted(int64(p.Keys), "key"))
}

func (r *Result) keysTable() table {
	few := at(r.Keys, thousand)
	t := table{Heads: []string{
		"keys", "grants/s", "over " + grouped(thousand) + " keys", "node CPU us", "entries/s", "p50 ms", "p99 ms",
		"longest gap ms", "buckets touched", "from escrow", "failed",
	}}
	for i := range r.Keys {
		p := &r.Keys[i]
		s := &p.Summary
		t.Title = fmt.Sprintf("active buckets, chosen uniformly, first touches included; %s, %d callers to all of them",
			counted(int64(p.Voters), "node"), p.Callers)
		over := ""
		if p != few {
			over = ratio(p.over(few, rate, 1))
		}
		t.Rows = append(t.Rows, []string{
			grouped(p.At), report.Spread(s.GrantsPerSecond, ""), over, s.cost(), report.Spread(s.Entries, ""),
			report.Spread(s.P50, ""), report.Spread(s.P99, ""), report.Spread(s.Gap, ""), report.Spread(s.Touched, ""), p.part(),
			grouped(s.Failed),
		})
	}
	return t
}

// part is how much came from escrow.
func (p *Point) part() string { return report.Spread(stat.SpreadOf(p.each(held)), "") }

func (r *Result) callersTable() table {
	t := table{Heads: []string{
		"callers", "grants/s", "node CPU us", "p50 ms", "p99 ms", "callers' cores", "from escrow", "failed",
	}}
	for i := range r.Callers {
		p := &r.Callers[i]
		s := &p.Summary
		t.Title = fmt.Sprintf("callers; %s over %s by sessions to all nodes",
			counted(int64(p.Voters), "node"), counted(int64(p.Keys), "key"))
		t.Rows = append(t.Rows, []string{
			grouped(p.At), report.Spread(s.GrantsPerSecond, ""), s.cost(), report.Spread(s.P50, ""), report.Spread(s.P99, ""),
			report.Spread(s.Generator, ""), p.part(), grouped(s.Failed),
		})
	}
	return t
}

func (r *Result) snapshotsTable() table {
	t := table{Heads: []string{
		"buckets", "snapshot MB", "taken", "pause ms", "longest pause ms", "grants/s", "p99 ms", "longest answer ms",
		"failed",
	}}
	for i := range r.Snapshots {
		s := &r.Snapshots[i]
		t.Title = fmt.Sprintf("snapshots under load; %d callers, every grant an entry of the log", s.Callers)
		t.Rows = append(t.Rows, []string{
			grouped(s.At), number(float64(s.Bytes) / 1e6), grouped(s.Taken), number(s.PauseMean), number(s.PauseMost),
			number(s.During.GrantsPerSecond), number(s.During.P99), number(s.During.Max), grouped(s.During.Failed),
		})
	}
	return t
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
	return fmt.Sprintf("one token a question, asked again at once; median of %s of %s s (lowest to highest)%s",
		rounds, number(s.LengthMS/1000), hasty)
}

// place is where and when.
func (r *Result) place() string {
	s := &r.Settings
	machine := s.Machine
	if machine != "" {
		machine += ", "
	}
	return fmt.Sprintf("%s; %s%d processors for nodes and callers together, %s; quorlease %s",
		s.Date, machine, s.Processors, s.Platform, r.Version)
}

// kept is what became of the guarantees, in one line.
func (r *Result) kept() string {
	broken := len(r.brokenChecks())
	switch {
	case len(r.Checks) == 0:
		return "G1 and G2 were not looked at"
	case broken > 0:
		return fmt.Sprintf("%d of %d checks of G1 and G2 failed", broken, len(r.Checks))
	default:
		return fmt.Sprintf("G1 and G2 held in all of %d checks, over whole histories", len(r.Checks))
	}
}

// Text writes the result for people.
func (r *Result) Text(w io.Writer) error {
	var out strings.Builder
	fmt.Fprintf(&out, "%s\n%s\n", r.heading(), r.place())
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	for _, t := range r.tables() {
		fmt.Fprintf(&out, "\n%s\n", t.Title)
		for _, row := range append([][]string{t.Heads}, t.Rows...) {
			fmt.Fprintf(table, "  %s\n", strings.Join(row, "\t"))
		}
		if err := table.Flush(); err != nil {
			return fmt.Errorf("write the result: %w", err)
		}
	}
	if len(r.Bounds) > 0 {
		fmt.Fprintln(table, "\nround by round\t\tbound\t")
	}
	for i := range r.Bounds {
		b := &r.Bounds[i]
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\n", b.Name, b.value(), b.bound(), b.verdict())
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	fmt.Fprintf(&out, "\n%s\n", r.kept())
	for _, line := range slices.Concat(r.brokenChecks(), r.Notes, r.failures()) {
		fmt.Fprintf(&out, "%s\n", line)
	}
	if _, err := io.WriteString(w, out.String()); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}

func (r *Result) brokenChecks() (lines []string) {
	for _, c := range r.Checks {
		if !c.OK {
			lines = append(lines, fmt.Sprintf("%s broken, by %s: %s", c.Guarantee, c.By, c.Text))
		}
	}
	return lines
}

// failures are calls without an answer, by reason.
func (r *Result) failures() (lines []string) {
	for _, part := range []struct {
		what   string
		points []Point
	}{{"node", r.Nodes}, {"key", r.Keys}, {"caller", r.Callers}} {
		for i := range part.points {
			p := &part.points[i]
			for _, reason := range slices.Sorted(maps.Keys(p.Failures)) {
				lines = append(lines, fmt.Sprintf("%s: %s failed by %s", counted(p.At, part.what),
					counted(p.Failures[reason], "call"), reason))
			}
		}
	}
	return lines
}

func number(f float64) string { return plot.Number(f) }

func grouped(n int64) string { return plot.Grouped(n) }
