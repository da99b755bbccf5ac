package plot

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBars(t *testing.T) {
	t.Parallel()
	b := Bars{Title: "how many", Unit: "us", Bars: []Bar{
		{Name: "long", Class: "quorlease", Low: 50, Median: 75, High: 100},
		{Name: "none", Class: "echo"},
	}}
	d := b.Draw()
	const half, whole = (barsRight - barsLeft) / 2.0, float64(barsRight - barsLeft)
	want := BarsDrawing{Title: "how many, us", Width: plotWidth, Height: 52, Bars: []BarDrawing{
		{
			Name: "long", Class: "quorlease", Text: "75", X: barsLeft, Y: 6, Width: whole * 0.75, Height: barHeight,
			LowX: barsLeft + half, HighX: barsRight, MiddleY: 13, TextX: barsRight + 8, TextY: 18, NameRight: barsLeft - 8,
		},
		{
			Name: "none", Class: "echo", Text: "0", X: barsLeft, Y: 32, Height: barHeight,
			LowX: barsLeft, HighX: barsLeft, MiddleY: 39, TextX: barsLeft + 8, TextY: 44, NameRight: barsLeft - 8,
		},
	}}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	empty := (&Bars{Bars: []Bar{{Name: "nothing"}}}).Draw()
	if empty.Bars[0].Width != 0 || empty.Bars[0].HighX != barsLeft {
		t.Errorf("nothing is drawn as %+v", empty.Bars[0])
	}
}
