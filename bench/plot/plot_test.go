package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

// TestPicture: a picture is whole, shows what it was given and fetches nothing.
func TestPicture(t *testing.T) {
	t.Parallel()
	p := Plot{
		Title: "calls", XLabel: "seconds", YLabel: "a second", LogY: true, XMax: 10,
		XTicks: []Tick{{At: 0, Text: "0"}, {At: 10, Text: "10"}}, Marks: []Tick{{At: 5, Text: "<killed>"}},
		Series: []Series{
			{Name: "before", Class: "before", Points: [][2]float64{{0, 1}, {10, 100}}},
			{Name: "after", Class: "quorlease", Points: [][2]float64{{0, 2}, {10, 2}}},
		},
	}
	var out bytes.Buffer
	if err := Picture(&out, "two plots", p.Draw(), p.Draw()); err != nil {
		t.Fatal(err)
	}
	decoder := xml.NewDecoder(&out)
	text := out.String()
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v in %s", err, text)
		}
	}
	for part, want := range map[string]int{
		"<polyline": 4, `height="640"`: 2, "&lt;killed&gt;": 2, ">before</text>": 2, `aria-label="two plots"`: 1,
		"<script": 0, "url(": 0, "ZgotmplZ": 0, "http://www.w3.org/2000/svg": 1, "http": 1,
	} {
		if got := strings.Count(text, part); got != want {
			t.Errorf("%q %d times, want %d", part, got, want)
		}
	}
}

// TestPlotOfNothing: lines without points are drawn as an empty field.
func TestPlotOfNothing(t *testing.T) {
	t.Parallel()
	for _, logarithmic := range []bool{false, true} {
		p := Plot{XMax: 1, LogY: logarithmic, Series: []Series{{Name: "none"}}}
		if d := p.Draw(); len(d.Curves) != 1 || d.Curves[0].Points != "" || len(d.Horizontal) < 2 {
			t.Errorf("logarithmic %v: %+v", logarithmic, d)
		}
	}
}
