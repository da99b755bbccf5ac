package plot

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

// Plot is a picture with axes.
type Plot struct {
	Title, XLabel, YLabel string
	// LogY spaces the vertical axis by powers of ten.
	LogY   bool
	XTicks []Tick
	Series []Series
	// Marks are moments with a text.
	Marks []Tick
	// XMax is the right end; the left one is 0.
	XMax float64
}

// Tick is a place on the horizontal axis.
type Tick struct {
	At   float64
	Text string
}

// Series is one line. Class is that of its colour.
type Series struct {
	Name, Class string
	Points      [][2]float64
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

// Draw works out the pixels.
func (p *Plot) Draw() Drawing {
	d := Drawing{Title: p.Title, XLabel: p.XLabel, YLabel: p.YLabel, Width: plotWidth, Height: plotHeight}
	low, high := p.ends()
	y := func(value float64) float64 {
		part := (value - low) / (high - low)
		if p.LogY {
			part = math.Log(max(value, low)/low) / math.Log(high/low)
		}
		return plotBottom - part*(plotBottom-plotTop)
	}
	x := func(value float64) float64 { return plotLeft + value/p.XMax*(plotRight-plotLeft) }
	for _, value := range p.yTicks(low, high) {
		d.Horizontal = append(d.Horizontal, Line{plotLeft, y(value), plotRight, y(value), Number(value)})
	}
	for _, t := range p.XTicks {
		d.Vertical = append(d.Vertical, Line{x(t.At), plotBottom, x(t.At), plotBottom + 5, t.Text})
	}
	for _, m := range p.Marks {
		d.Marks = append(d.Marks, Line{x(m.At), plotTop, x(m.At), plotBottom, m.Text})
	}
	for _, s := range p.Series {
		var points strings.Builder
		for _, at := range s.Points {
			fmt.Fprintf(&points, "%.1f,%.1f ", x(at[0]), y(at[1]))
		}
		curve := Curve{Name: s.Name, Class: s.Class, Points: strings.TrimSpace(points.String())}
		if len(s.Points) <= dotsMost {
			for _, at := range s.Points {
				curve.Dots = append(curve.Dots, [2]float64{x(at[0]), y(at[1])})
			}
		}
		d.Curves = append(d.Curves, curve)
	}
	return d
}

// ends are those of the vertical axis.
func (p *Plot) ends() (low, high float64) {
	smallest := math.Inf(1)
	for _, s := range p.Series {
		for _, at := range s.Points {
			high = max(high, at[1])
			if at[1] > 0 {
				smallest = min(smallest, at[1])
			}
		}
	}
	if high == 0 {
		high, smallest = 1, 0.1
	}
	if !p.LogY {
		step := NiceStep(high / 4)
		return 0, math.Ceil(high/step) * step
	}
	low = math.Pow(10, math.Floor(math.Log10(smallest)))
	high = math.Pow(10, math.Ceil(math.Log10(high)))
	if low == high {
		high *= 10
	}
	return low, high
}

func (p *Plot) yTicks(low, high float64) (ticks []float64) {
	if p.LogY {
		for value := low; value <= high*1.001; value *= 10 {
			ticks = append(ticks, value)
		}
		return ticks
	}
	step := NiceStep(high / 4)
	for value := low; value <= high*1.001; value += step {
		ticks = append(ticks, value)
	}
	return ticks
}

// NiceStep is the next of 1, 2, 5 times a power of ten.
func NiceStep(least float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(least)))
	for _, factor := range []float64{1, 2, 5} {
		if factor*power >= least*0.999 {
			return factor * power
		}
	}
	return 10 * power
}
