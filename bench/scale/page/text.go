package page

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/quorlease/quorlease/bench/plot"
	"github.com/quorlease/quorlease/bench/sheet"
	"github.com/quorlease/quorlease/bench/stat"
)

// tables are the parts that were run.
func (r *Result) tables() (all []sheet.Table) {
	for _, t := range []sheet.Table{
		r.nodesTable(), r.keysTable(), r.callersTable(), r.entriesTable(), r.snapshotsTable(),
	} {
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
	return plot.Spread(*s, "")
}

// cost is the nodes' processor time.
func (s *Summary) cost() string {
	if s.CPU == nil {
		return "not known"
	}
	return plot.Spread(*s.CPU, "")
}

func (r *Result) nodesTable() sheet.Table {
	one, second := at(r.Nodes, 1), r.second()
	from := "from the second on"
	if second != nil {
		from = fmt.Sprintf("from %d on", second.At)
	}
	t := sheet.Table{
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
			p.members(), plot.Spread(s.GrantsPerSecond, ""), ratio(p.linear(one)), onward, s.cost(),
			plot.Spread(s.Busiest, ""), plot.Spread(s.Entries, ""),
			plot.Spread(s.P50, ""), plot.Spread(s.P99, ""), plot.Spread(s.Generator, ""), grouped(s.Failed),
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

func (r *Result) keysTable() sheet.Table {
	few := at(r.Keys, thousand)
	t := sheet.Table{Heads: []string{
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
			grouped(p.At), plot.Spread(s.GrantsPerSecond, ""), over, s.cost(), plot.Spread(s.Entries, ""),
			plot.Spread(s.P50, ""), plot.Spread(s.P99, ""), plot.Spread(s.Gap, ""), plot.Spread(s.Touched, ""), p.part(),
			grouped(s.Failed),
		})
	}
	return t
}

// part is how much came from escrow.
func (p *Point) part() string { return plot.Spread(stat.SpreadOf(p.each(held)), "") }

func (r *Result) callersTable() sheet.Table {
	t := sheet.Table{Heads: []string{
		"callers", "grants/s", "node CPU us", "p50 ms", "p99 ms", "callers' cores", "from escrow", "failed",
	}}
	for i := range r.Callers {
		p := &r.Callers[i]
		s := &p.Summary
		t.Title = fmt.Sprintf("callers; %s over %s by sessions to all nodes",
			counted(int64(p.Voters), "node"), counted(int64(p.Keys), "key"))
		t.Rows = append(t.Rows, []string{
			grouped(p.At), plot.Spread(s.GrantsPerSecond, ""), s.cost(), plot.Spread(s.P50, ""), plot.Spread(s.P99, ""),
			plot.Spread(s.Generator, ""), p.part(), grouped(s.Failed),
		})
	}
	return t
}

func (r *Result) entriesTable() sheet.Table {
	t := sheet.Table{Heads: []string{
		"buckets", "grants/s", "entries/s", "node CPU us", "p50 ms", "p99 ms", "from escrow", "failed",
	}}
	for i := range r.Entries {
		p := &r.Entries[i]
		s := &p.Summary
		t.Title = fmt.Sprintf("entries of the log at a steady rate; %s, open loop of %s a second by sessions to all nodes",
			counted(int64(p.Voters), "node"), number(r.Settings.Steady))
		t.Rows = append(t.Rows, []string{
			grouped(p.At), plot.Spread(s.GrantsPerSecond, ""), plot.Spread(s.Entries, ""), s.cost(), plot.Spread(s.P50, ""),
			plot.Spread(s.P99, ""), p.part(), grouped(s.Failed),
		})
	}
	return t
}

func (r *Result) snapshotsTable() sheet.Table {
	t := sheet.Table{Heads: []string{
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

// Section is the measure as a part of a sheet.
func (r *Result) Section() sheet.Section {
	s := sheet.Section{
		Section: "scale", Title: "How it scales", Heading: []string{r.heading()}, Hasty: r.Settings.Hasty,
		Tables: r.tables(), Plots: r.plots(), Bounds: r.Bounds, Checks: r.Checks, Notes: r.Notes,
	}
	if failures := r.failures(); len(failures) > 0 {
		s.Lists = append(s.Lists, sheet.List{Title: "failed calls", Lines: failures})
	}
	return s
}

func (r *Result) sheet() *sheet.Sheet {
	return &sheet.Sheet{
		Title: "quorlease bench scale", Version: r.Version, Place: r.Settings.Place, Sections: []sheet.Section{r.Section()},
	}
}

// Text writes the result for people.
func (r *Result) Text(w io.Writer) error { return r.sheet().Text(w) }

// failures are calls without an answer, by reason.
func (r *Result) failures() (lines []string) {
	for _, part := range []struct {
		what   string
		points []Point
	}{{"node", r.Nodes}, {"key", r.Keys}, {"caller", r.Callers}, {"bucket", r.Entries}} {
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
