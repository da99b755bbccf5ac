package plot

// Bars are figures of the same kind below one another: as long as their median, with
// a line from the lowest to the highest.
type Bars struct {
	Title, Unit string
	Bars        []Bar
}

// Bar is one. Class is that of its colour.
type Bar struct {
	Name, Class       string
	Low, Median, High float64
}

// The places of bars, in pixels.
const (
	barsLeft, barsRight = 330, 660
	barStep, barHeight  = 26, 14
	barTextBelow        = 12
)

// What the template draws.
type (
	// BarDrawing is a bar in pixels.
	BarDrawing struct {
		Name, Class, Text       string
		X, Y, Width, Height     float64
		LowX, HighX, MiddleY    float64
		TextX, TextY, NameRight float64
	}
	// BarsDrawing is all of them.
	BarsDrawing struct {
		Title         string
		Width, Height int
		Bars          []BarDrawing
	}
)

// Draw works out the pixels. The text stands behind the end of what was measured.
func (b *Bars) Draw() BarsDrawing {
	title := b.Title
	if b.Unit != "" {
		title += ", " + b.Unit
	}
	d := BarsDrawing{Title: title, Width: plotWidth, Height: barStep * len(b.Bars)}
	high := 0.0
	for _, bar := range b.Bars {
		high = max(high, bar.High)
	}
	if high == 0 {
		high = 1
	}
	x := func(value float64) float64 { return barsLeft + value/high*(barsRight-barsLeft) }
	for i, bar := range b.Bars {
		top := float64(i*barStep) + (barStep-barHeight)/2
		d.Bars = append(d.Bars, BarDrawing{
			Name: bar.Name, Class: bar.Class, Text: Number(bar.Median),
			X: barsLeft, Y: top, Width: x(bar.Median) - barsLeft, Height: barHeight,
			LowX: x(bar.Low), HighX: x(bar.High), MiddleY: top + barHeight/2,
			TextX: x(bar.High) + 8, TextY: top + barTextBelow, NameRight: barsLeft - 8,
		})
	}
	return d
}
