package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"strconv"

	"github.com/quorlease/quorlease/bench/plot"
	"github.com/quorlease/quorlease/bench/stat"
)

//go:embed page.html
var pageText string

var page = template.Must(plot.Template("page", template.FuncMap{
	"number": number,
	"seconds": func(ms float64) string {
		return strconv.FormatFloat(ms/1000, 'f', 2, 64)
	},
}).Parse(pageText))

// HTML writes one page that needs nothing else: no script, no font, no network.
func (r *Result) HTML(w io.Writer) error {
	type cells struct{ Name, Quorlease, Echo string }
	view := struct {
		*Result
		Heading, Limits string
		Rows            []cells
		Drawings        []plot.Drawing
		Missed          []string
	}{Result: r, Heading: r.heading(), Limits: r.limits(), Missed: r.Broken()}
	for _, one := range r.rows() {
		view.Rows = append(view.Rows, cells{one.name, one.quorlease, one.echo})
	}
	view.Drawings = append(view.Drawings, r.overTime(), r.byPercentile())
	if r.Echo != nil {
		view.Drawings = append(view.Drawings, r.byRound())
	}
	if err := page.Execute(w, view); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

// overTime shows what was decided when, the rounds one after another. The echo's
// part is another scale and another picture.
func (r *Result) overTime() plot.Drawing {
	p := plot.Plot{Title: "Decisions over time, quorlease", XLabel: "seconds of measured time", YLabel: "a second"}
	lines := []plot.Series{
		{Name: "granted", Class: "granted"},
		{Name: "denied", Class: "denied"},
		{Name: "failed", Class: "failed"},
		{Name: "by the client itself", Class: "local"},
	}
	if r.Settings.Path != "client" {
		lines = lines[:3]
	}
	begin := 0.0
	for i := range r.Rounds {
		side := &r.Rounds[i].Quorlease
		slot := side.Timeline.SlotMS / 1000
		all := [][]int64{side.Timeline.Granted, side.Timeline.Denied, side.Timeline.Failed, side.Timeline.Local}
		for n, counts := range all[:len(lines)] {
			for at, count := range counts {
				lines[n].Points = append(lines[n].Points, [2]float64{begin + (float64(at)+0.5)*slot, float64(count) / slot})
			}
		}
		begin += side.Seconds
	}
	p.XMax = math.Max(begin, 0.1)
	for at, step := 0.0, plot.NiceStep(p.XMax/8); at <= p.XMax*1.001; at += step {
		p.XTicks = append(p.XTicks, plot.Tick{At: at, Text: number(at)})
	}
	for _, f := range r.Faults {
		p.Marks = append(p.Marks, plot.Tick{At: f.AtMS / 1000, Text: f.What})
	}
	p.Series = lines
	return p.Draw()
}

// byPercentile shows both sides' latencies, the median of the rounds, with the rare
// ones as wide as the common ones.
func (r *Result) byPercentile() plot.Drawing {
	title := "Latency by percentile"
	if r.Settings.OfferedRate > 0 {
		title += ", from the intended start"
	}
	p := plot.Plot{Title: title, XLabel: "percent of calls that took at most", YLabel: "ms", LogY: true}
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
	curve := func(name string, of func(*Round) *Side) {
		if len(r.Rounds) == 0 {
			return
		}
		s := plot.Series{Name: name, Class: name}
		for i, point := range of(&r.Rounds[0]).Percentiles {
			var rounds []float64
			for n := range r.Rounds {
				rounds = append(rounds, of(&r.Rounds[n]).Percentiles[i].MS)
			}
			s.Points = append(s.Points, [2]float64{place(point.Percent), stat.SpreadOf(rounds).Median})
		}
		p.Series = append(p.Series, s)
	}
	curve("quorlease", func(round *Round) *Side { return &round.Quorlease })
	if r.Echo != nil {
		curve("echo", func(round *Round) *Side { return round.Echo })
	}
	return p.Draw()
}

// byRound shows both sides of every round: a ratio is worth what its two sides
// have in common.
func (r *Result) byRound() plot.Drawing {
	p := plot.Plot{
		Title: "Decisions and echoes a second, round by round", XLabel: "round", YLabel: "a second", LogY: true,
		XMax: float64(len(r.Rounds) + 1),
	}
	quorlease, echo := plot.Series{Name: "quorlease", Class: "quorlease"}, plot.Series{Name: "echo", Class: "echo"}
	for i := range r.Rounds {
		at := float64(i + 1)
		p.XTicks = append(p.XTicks, plot.Tick{At: at, Text: strconv.Itoa(i + 1)})
		quorlease.Points = append(quorlease.Points, [2]float64{at, r.Rounds[i].Quorlease.DecisionsPerSecond})
		echo.Points = append(echo.Points, [2]float64{at, r.Rounds[i].Echo.DecisionsPerSecond})
	}
	p.Series = []plot.Series{quorlease, echo}
	return p.Draw()
}
