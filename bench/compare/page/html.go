package page

import (
	"io"
	"math"
	"strconv"

	"github.com/quorlease/quorlease/bench/plot"
	"github.com/quorlease/quorlease/bench/report"
	"github.com/quorlease/quorlease/bench/stat"
)

// HTML writes one page that needs nothing else: no script, no font, no network.
func (r *Result) HTML(w io.Writer) error { return r.sheet().HTML(w) }

// class is a side's colour.
func (s *Side) class() string {
	switch s.System {
	case "quorlease":
		return "quorlease"
	case "echo":
		return "echo"
	default:
		return "local"
	}
}

func bar(s *Side, spread stat.Spread) plot.Bar {
	return plot.Bar{Name: s.Name, Class: s.class(), Low: spread.Min, Median: spread.Median, High: spread.Max}
}

// rates are the decisions a second of a group.
func (r *Result) rates(g group) plot.BarsDrawing {
	bars := plot.Bars{Title: "Decisions a second, " + g.Title}
	for i := range r.Sides {
		if side := &r.Sides[i]; side.Kind == g.Kind {
			bars.Bars = append(bars.Bars, bar(side, side.Summary.DecisionsPerSecond))
		}
	}
	return bars.Draw()
}

// processorTime is what a decision costs all servers of a side, where it is known.
func (r *Result) processorTime() plot.BarsDrawing {
	bars := plot.Bars{Title: "Processor time of all servers, a decision", Unit: "us"}
	for i := range r.Sides {
		if side := &r.Sides[i]; side.Summary.CPU != nil && side.Kind != Paced {
			bars.Bars = append(bars.Bars, bar(side, *side.Summary.CPU))
		}
	}
	return bars.Draw()
}

// curves are the sides whose latencies are drawn, by the class of their colour. More
// in one picture could not be told apart.
var curves = []struct{ side, class string }{
	{"echo-unary", "echo"},
	{"escrow-unary", "quorlease"},
	{"ratelimit", "failed"},
	{"redis-memory-single", "local"},
	{"echo-stream", "echo"},
	{"escrow-session", "quorlease"},
	{"consensus-session", "failed"},
	{"redis-memory-pipelined", "local"},
}

// byPercentile shows latencies, with the rare ones as wide as the common ones.
func (r *Result) byPercentile(g group) plot.Drawing {
	p := plot.Plot{
		Title: "Latency by percentile, " + g.Title, XLabel: "percent of questions that took at most",
		YLabel: "ms", LogY: true,
	}
	place := func(percent float64) float64 {
		if percent >= 100 {
			return 5
		}
		return -math.Log10(1 - percent/100)
	}
	p.XMax = place(100)
	for _, percent := range []float64{0, 50, 90, 99, 99.9, 99.99, 100} {
		text := strconv.FormatFloat(percent, 'f', -1, 64)
		if percent == 100 {
			text = "all"
		}
		p.XTicks = append(p.XTicks, plot.Tick{At: place(percent), Text: text})
	}
	for _, c := range curves {
		side := r.side(c.side)
		if side == nil || side.Kind != g.Kind || len(side.Rounds) == 0 {
			continue
		}
		s := plot.Series{Name: side.Name, Class: c.class}
		for i, point := range side.Rounds[0].Percentiles {
			all := stat.SpreadOf(each(side.Rounds, func(round *report.Side) float64 { return round.Percentiles[i].MS }))
			s.Points = append(s.Points, [2]float64{place(point.Percent), all.Median})
		}
		p.Series = append(p.Series, s)
	}
	return p.Draw()
}

// each is one figure of every round.
func each(rounds []report.Side, of func(*report.Side) float64) []float64 {
	values := make([]float64, len(rounds))
	for i := range rounds {
		values[i] = of(&rounds[i])
	}
	return values
}
