package page

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/quorlease/quorlease/bench/plot"
	"github.com/quorlease/quorlease/bench/storm"
)

// each is one scenario by itself.
type each struct {
	*storm.Outcome
	// Drawings show what the provider answered, and who waited.
	Drawings []plot.Drawing
}

// eachOf draws what is to be seen of a scenario alone.
func eachOf(o *storm.Outcome) (e each) {
	e.Outcome = o
	t := o.Timeline
	if t == nil {
		return e
	}
	slot := t.SlotMS / 1000
	// per counts in a slot, a second.
	per := func(name, class string, counts []int64, seconds float64) plot.Series {
		s := plot.Series{Name: name, Class: class}
		for at, n := range counts {
			s.Points = append(s.Points, [2]float64{(float64(at) + 0.5) * slot, float64(n) / seconds})
		}
		return s
	}
	answers := plot.Plot{
		Title: o.Slug + ": what the provider answers", XLabel: "seconds", YLabel: "calls, a second",
		Series: []plot.Series{
			per("served", "quorlease", t.Admitted, slot), per("refused, 429", "before", t.Refused, slot),
		},
	}
	e.Drawings = append(e.Drawings, ticked(&answers, float64(len(t.Admitted))*slot))
	if len(t.Waiting) > 0 {
		waiting := plot.Plot{
			Title: o.Slug + ": who waits at gateways", XLabel: "seconds", YLabel: "requests",
			Series: []plot.Series{per("waiting", "local", t.Waiting, 1)},
		}
		e.Drawings = append(e.Drawings, ticked(&waiting, float64(len(t.Waiting))*slot))
	}
	return e
}

// ticked draws a plot that ends at some seconds.
func ticked(p *plot.Plot, end float64) plot.Drawing {
	p.XMax = end
	for at, step := 0.0, plot.NiceStep(end/8); at <= end*1.001; at += step {
		p.XTicks = append(p.XTicks, plot.Tick{At: at, Text: plot.Number(at)})
	}
	return p.Draw()
}

// ByClient are the rows of a table by client, where it is drawn.
func (e each) ByClient() [][]string {
	if len(e.Drawings) == 0 {
		return nil
	}
	return clients(e.Outcome)
}

// ClientColumns are the heads of that table.
func (e each) ClientColumns() []string { return clientColumns }

var clientColumns = []string{"client", "requests", "forwarded", "served", "refused, by reason", "tokens"}

func clients(o *storm.Outcome) (rows [][]string) {
	number := func(n int64) string { return plot.Number(float64(n)) }
	for _, c := range o.Clients {
		var reasons []string
		for _, reason := range slices.Sorted(maps.Keys(c.Refused)) {
			reasons = append(reasons, number(c.Refused[reason])+" "+reason)
		}
		rows = append(rows, []string{
			c.Client, number(c.Requests), number(c.Forwarded), number(c.Served), strings.Join(reasons, ", "), number(c.Tokens),
		})
	}
	return rows
}

// writeClients writes the table by client of each scenario that has one.
func (g group) writeClients(w io.Writer) error {
	for _, o := range g.outcomes {
		rows := clients(o)
		if len(rows) == 0 {
			continue
		}
		fmt.Fprintf(w, "%s, by client:\n\n", o.Slug)
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, row := range append([][]string{clientColumns}, rows...) {
			fmt.Fprintln(table, strings.Join(row, "\t"))
		}
		if err := table.Flush(); err != nil {
			return fmt.Errorf("write the result: %w", err)
		}
		fmt.Fprintln(w)
	}
	return nil
}
