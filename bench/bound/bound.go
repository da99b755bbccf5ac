// Package bound holds a figure to what it must be, and says what became of it. Every
// bench has its bounds from here: what they are, and how they are told.
package bound

import (
	"fmt"

	"github.com/quorlease/quorlease/bench/plot"
	"github.com/quorlease/quorlease/bench/stat"
)

// Bound is a figure that this program is held to, or that is there to be read. Its
// JSON is documented in docs/reference/bench.md: a field is added, never renamed.
type Bound struct {
	// Bound is its slug.
	Bound string `json:"bound"`
	Name  string `json:"name"`
	// Unit of the figure; empty for ratios, parts and counts.
	Unit string `json:"unit"`
	// Least or Most is what the median must be; neither: the figure is there to be
	// read. Aim is what would be good.
	Least *float64 `json:"least"`
	Most  *float64 `json:"most"`
	Aim   *float64 `json:"aim"`
	// Got is nil where it was not measured, and Why says why.
	Got *stat.Spread `json:"got"`
	Why string       `json:"why"`
	// Required: not measured is as bad as missed.
	Required bool `json:"required"`
	// Ours and Beside are what a ratio was made of, round by round. Nil: it is none.
	Ours   *Term `json:"ours"`
	Beside *Term `json:"beside"`
	// OK: the median keeps the bound, or there is nothing to keep.
	OK bool `json:"ok"`
}

// Term is one side of a ratio. Name is empty for this program's.
type Term struct {
	Name string      `json:"name"`
	Unit string      `json:"unit"`
	Got  stat.Spread `json:"got"`
}

// The verdicts. One without a bound has none.
const (
	Kept        = "kept"
	Missed      = "MISSED"
	NotMeasured = "not measured"
	// NotThere is what is required and was not measured.
	NotThere = "NOT MEASURED"
)

// Judge notes what was seen. Nil got: it was not measured, and why says why. Where
// binds is false the figure is only there to be read.
func (b Bound) Judge(got *stat.Spread, why string, binds bool) Bound {
	if !binds {
		b.Least, b.Most, b.Aim, b.Required = nil, nil, nil, false
	}
	// What is only there to be read is nobody's loss.
	b.Required = b.Required && (b.Least != nil || b.Most != nil)
	b.Got, b.Why = got, why
	if got == nil {
		if why == "" {
			b.Why = "there is no figure"
		}
		b.OK = !b.Required
		return b
	}
	b.Why = ""
	b.OK = (b.Least == nil || got.Median >= *b.Least) && (b.Most == nil || got.Median <= *b.Most)
	return b
}

// Verdict is a word or two; empty where nothing is to be kept.
func (b *Bound) Verdict() string {
	switch {
	case b.Least == nil && b.Most == nil:
		return ""
	case b.Got == nil && b.Required:
		return NotThere
	case b.Got == nil:
		return NotMeasured
	case !b.OK:
		return Missed
	default:
		return Kept
	}
}

// Must says what the figure must be, empty where it is only there to be read.
func (b *Bound) Must() string {
	var text string
	switch {
	case b.Least != nil:
		text = "≥ " + plot.Number(*b.Least) + behind(b.Unit)
	case b.Most != nil && *b.Most == 0:
		text = "0" + behind(b.Unit)
	case b.Most != nil:
		text = "≤ " + plot.Number(*b.Most) + behind(b.Unit)
	default:
		return ""
	}
	if b.Aim != nil {
		text += fmt.Sprintf(" (aim %s)", plot.Number(*b.Aim))
	}
	return text
}

// Value is what it was, or why it was not measured.
func (b *Bound) Value() string {
	if b.Got == nil {
		return NotMeasured + ": " + b.Why
	}
	return plot.Spread(*b.Got, behind(b.Unit))
}

// Text is what a side of a ratio was.
func (t *Term) Text() string { return t.named(t.Got) }

// Median is the same without its ends.
func (t *Term) Median() string {
	return t.named(stat.Spread{Median: t.Got.Median, Min: t.Got.Median, Max: t.Got.Median})
}

func (t *Term) named(s stat.Spread) string {
	text := plot.Spread(s, behind(t.Unit))
	if t.Name != "" {
		text = t.Name + " " + text
	}
	return text
}

// Line says in one what is wrong with it.
func (b *Bound) Line() string {
	if b.Got == nil {
		return fmt.Sprintf("%s: %s, and it is required", b.Name, b.Value())
	}
	return fmt.Sprintf("%s: %s is not %s", b.Name, b.Value(), b.Must())
}

// Lines are those of all that are not as they must be.
func Lines(bounds []Bound) (lines []string) {
	for i := range bounds {
		if !bounds[i].OK {
			lines = append(lines, bounds[i].Line())
		}
	}
	return lines
}

// behind is a unit as it stands behind a number.
func behind(unit string) string {
	if unit == "" || unit[0] == '/' {
		return unit
	}
	return " " + unit
}
