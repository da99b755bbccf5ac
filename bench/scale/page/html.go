package page

import (
	"fmt"
	"io"
	"math"

	"github.com/quorlease/quorlease/bench/plot"
)

// HTML writes one page that needs nothing else: no script, no font, no network.
func (r *Result) HTML(w io.Writer) error { return r.sheet().HTML(w) }

func (r *Result) plots() (drawings []plot.Drawing) {
	if len(r.Nodes) > 0 {
		drawings = append(drawings, r.nodesPlot(), r.costPlot())
	}
	for _, one := range []struct {
		points []Point
		what   string
	}{{r.Keys, "keys"}, {r.Callers, "callers"}} {
		if len(one.points) > 0 {
			drawings = append(drawings,
				byPowers("Grants a second by "+one.what, one.what, "", false, lines(one.points, []line{
					{"grants a second", "quorlease", func(p *Point) float64 { return p.Summary.GrantsPerSecond.Median }},
				})),
				byPowers("Latency by "+one.what, one.what, "ms", true, lines(one.points, []line{
					{"p50", "local", func(p *Point) float64 { return p.Summary.P50.Median }},
					{"p99", "quorlease", func(p *Point) float64 { return p.Summary.P99.Median }},
					{"longest time without a grant", "failed", func(p *Point) float64 { return p.Summary.Gap.Median }},
				})))
		}
	}
	if len(r.Snapshots) > 0 {
		drawings = append(drawings, r.snapshotsPlot())
	}
	return drawings
}

// line is a figure of points.
type line struct {
	name, class string
	of          func(*Point) float64
}

// lines are the figures by the power of ten of their place.
func lines(points []Point, all []line) (series []plot.Series) {
	for _, l := range all {
		s := plot.Series{Name: l.name, Class: l.class}
		for i := range points {
			s.Points = append(s.Points, [2]float64{math.Log10(float64(points[i].At)), l.of(&points[i])})
		}
		series = append(series, s)
	}
	return series
}

// byPowers has an axis of powers of ten, as wide as what is on it.
func byPowers(title, across, unit string, logY bool, series []plot.Series) plot.Drawing {
	p := plot.Plot{Title: title, XLabel: across, YLabel: unit, LogY: logY, Series: series, XMax: 1}
	for _, s := range series {
		for _, point := range s.Points {
			p.XMax = max(p.XMax, math.Ceil(point[0]))
		}
	}
	for power := range int(p.XMax) + 1 {
		p.XTicks = append(p.XTicks, plot.Tick{At: float64(power), Text: grouped(int64(math.Pow10(power)))})
	}
	return p.Draw()
}

// byNodes has an axis of nodes.
func (r *Result) byNodes(title, unit string, all []line) plot.Drawing {
	p := plot.Plot{Title: title, XLabel: "nodes", YLabel: unit, XMax: 1}
	for i := range r.Nodes {
		n := float64(r.Nodes[i].At)
		p.XMax = max(p.XMax, n)
		p.XTicks = append(p.XTicks, plot.Tick{At: n, Text: grouped(r.Nodes[i].At)})
	}
	for _, l := range all {
		s := plot.Series{Name: l.name, Class: l.class}
		for i := range r.Nodes {
			s.Points = append(s.Points, [2]float64{float64(r.Nodes[i].At), l.of(&r.Nodes[i])})
		}
		p.Series = append(p.Series, s)
	}
	return p.Draw()
}

// nodesPlot shows what nodes add beside what they would if each added as much as the
// first, and as each of the first cluster of more than one.
func (r *Result) nodesPlot() plot.Drawing {
	all := []line{{"measured", "quorlease", func(p *Point) float64 { return p.Summary.GrantsPerSecond.Median }}}
	straight := func(name, class string, from *Point) {
		if from != nil {
			all = append(all, line{name, class, func(p *Point) float64 {
				return from.Summary.GrantsPerSecond.Median * float64(p.At) / float64(from.At)
			}})
		}
	}
	straight("linear from one node", "local", at(r.Nodes, 1))
	if second := r.second(); second != nil {
		straight(fmt.Sprintf("linear from %d nodes", second.At), "echo", second)
	}
	return r.byNodes("Grants a second by nodes, "+r.sharing(), "", all)
}

func (r *Result) costPlot() plot.Drawing {
	cost := func(p *Point) float64 {
		if p.Summary.CPU == nil {
			return 0
		}
		return p.Summary.CPU.Median
	}
	return r.byNodes("Processor time of all nodes, a grant", "us", []line{{"measured", "quorlease", cost}})
}

func (r *Result) snapshotsPlot() plot.Drawing {
	pause := plot.Series{Name: "longest pause of applying", Class: "quorlease"}
	answer := plot.Series{Name: "longest answer", Class: "failed"}
	for i := range r.Snapshots {
		s := &r.Snapshots[i]
		x := math.Log10(float64(s.At))
		pause.Points = append(pause.Points, [2]float64{x, s.PauseMost})
		answer.Points = append(answer.Points, [2]float64{x, s.During.Max})
	}
	return byPowers("Snapshots under load, by the buckets of the state", "buckets", "ms", true,
		[]plot.Series{pause, answer})
}
