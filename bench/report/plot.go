package report

import (
	"fmt"
	"math"
	"strings"
)

// The place of a plot's field inside its picture, in pixels.
const (
	plotWidth, plotHeight = 760, 280
	plotLeft, plotRight   = 70, 750
	plotTop, plotBottom   = 16, 240
)

// dotsMost is how many points of a line are shown one by one.
const dotsMost = 10

// plot is a picture with axes.
type plot struct {
	Title, XLabel, YLabel string
	// logY spaces the vertical axis by powers of ten.
	logY   bool
	xTicks []tick
	series []series
	// marks are moments with a text.
	marks []tick
	// xMax is the right end; the left one is 0.
	xMax float64
}

type tick struct {
	at   float64
	text string
}

// series is one line. Class is that of its colour.
type series struct {
	name, class string
	points      [][2]float64
}

// What the template draws.
type (
	// Line is a straight one with a text at its end.
	Line struct {
		X1, Y1, X2, Y2 float64
		Text           string
	}
	// Curve is the line of a series.
	Curve struct {
		Name, Class, Points string
		// Dots stand on the points where these are few.
		Dots [][2]float64
	}
	// Drawing is a plot in pixels.
	Drawing struct {
		Title, XLabel, YLabel string
		Width, Height         int
		Horizontal, Vertical  []Line
		Marks                 []Line
		Curves                []Curve
	}
)

// draw works out the pixels.
func (p *plot) draw() Drawing {
	d := Drawing{Title: p.Title, XLabel: p.XLabel, YLabel: p.YLabel, Width: plotWidth, Height: plotHeight}
	low, high := p.ends()
	y := func(value float64) float64 {
		part := (value - low) / (high - low)
		if p.logY {
			part = math.Log(max(value, low)/low) / math.Log(high/low)
		}
		return plotBottom - part*(plotBottom-plotTop)
	}
	x := func(value float64) float64 { return plotLeft + value/p.xMax*(plotRight-plotLeft) }
	for _, value := range p.yTicks(low, high) {
		d.Horizontal = append(d.Horizontal, Line{plotLeft, y(value), plotRight, y(value), number(value)})
	}
	for _, t := range p.xTicks {
		d.Vertical = append(d.Vertical, Line{x(t.at), plotBottom, x(t.at), plotBottom + 5, t.text})
	}
	for _, m := range p.marks {
		d.Marks = append(d.Marks, Line{x(m.at), plotTop, x(m.at), plotBottom, m.text})
	}
	for _, s := range p.series {
		var points strings.Builder
		for _, at := range s.points {
			fmt.Fprintf(&points, "%.1f,%.1f ", x(at[0]), y(at[1]))
		}
		curve := Curve{Name: s.name, Class: s.class, Points: strings.TrimSpace(points.String())}
		if len(s.points) <= dotsMost {
			for _, at := range s.points {
				curve.Dots = append(curve.Dots, [2]float64{x(at[0]), y(at[1])})
			}
		}
		d.Curves = append(d.Curves, curve)
	}
	return d
}

// ends are those of the vertical axis.
func (p *plot) ends() (low, high float64) {
	smallest := math.Inf(1)
	for _, s := range p.series {
		for _, at := range s.points {
			high = max(high, at[1])
			if at[1] > 0 {
				smallest = min(smallest, at[1])
			}
		}
	}
	if high == 0 {
		high, smallest = 1, 0.1
	}
	if !p.logY {
		step := niceStep(high / 4)
		return 0, math.Ceil(high/step) * step
	}
	low = math.Pow(10, math.Floor(math.Log10(smallest)))
	high = math.Pow(10, math.Ceil(math.Log10(high)))
	if low == high {
		high *= 10
	}
	return low, high
}

func (p *plot) yTicks(low, high float64) (ticks []float64) {
	if p.logY {
		for value := low; value <= high*1.001; value *= 10 {
			ticks = append(ticks, value)
		}
		return ticks
	}
	step := niceStep(high / 4)
	for value := low; value <= high*1.001; value += step {
		ticks = append(ticks, value)
	}
	return ticks
}

// niceStep is the next of 1, 2, 5 times a power of ten.
func niceStep(least float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(least)))
	for _, factor := range []float64{1, 2, 5} {
		if factor*power >= least*0.999 {
			return factor * power
		}
	}
	return 10 * power
}
