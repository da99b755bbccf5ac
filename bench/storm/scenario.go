package storm

import (
	"math"
	"slices"
	"time"

	"github.com/quorlease/quorlease/bench/provider"
	"github.com/quorlease/quorlease/bench/storm/authority"
)

// Scenario is one storm, or the same with Quorlease.
type Scenario struct {
	// Slug names it on the command line.
	Slug string
	// Title is what happens, in a line; Text says more.
	Title, Text string
	// Twins are the scenarios that it is to be seen beside: what happened before.
	// A scenario that is itself one of them has none.
	Twins []string

	run func(seed uint64, o *Outcome)
}

// Run plays the scenario. The same seed gives the same outcome.
func (s Scenario) Run(seed uint64) *Outcome {
	o := &Outcome{Slug: s.Slug, Title: s.Title, Text: s.Text, Twins: s.Twins}
	broken := s.play(seed, o)
	if len(s.Twins) > 0 || len(broken) > 0 {
		o.exactly(GuaranteesBroken, len(broken), 0)
	}
	for _, line := range broken {
		o.Text += " " + line + "."
	}
	o.Sum()
	return o
}

// Sum fills in OK.
func (o *Outcome) Sum() { o.OK = len(o.Missed()) == 0 }

// play runs it and returns which guarantees broke, a line each: it ends there then.
func (s Scenario) play(seed uint64, o *Outcome) (broken []string) {
	defer func() {
		switch what := recover().(type) {
		case nil:
		case authority.Broken:
			broken = what
		default:
			panic(what)
		}
	}()
	s.run(seed, o)
	return nil
}

// All are the scenarios, those before first.
func All() []Scenario {
	return slices.Concat(nightlyStorms(), quotaStorms(), fleetStorms())
}

// Find is the scenario of that slug.
func Find(slug string) (Scenario, bool) {
	for _, s := range All() {
		if s.Slug == slug {
			return s, true
		}
	}
	return Scenario{}, false
}

// Outcome is what a scenario came to. Its JSON is documented in
// docs/reference/bench.md: a field is added, never renamed.
type Outcome struct {
	Slug  string   `json:"scenario"`
	Title string   `json:"title"`
	Text  string   `json:"text"`
	Twins []string `json:"beside"`
	// Figures are in the order in which people read them.
	Figures []Figure `json:"figures"`
	// Timeline is the calls at the provider. Absent where there is none.
	Timeline *Timeline `json:"timeline"`
	// Clients are those of a scenario with whole gateways.
	Clients []Client `json:"clients,omitempty"`
	// OK: every figure is in its range.
	OK bool `json:"ok"`
}

// Client is what one client of a gateway asked for and got.
type Client struct {
	Client string `json:"client"`
	// Requests came to gateways, Forwarded were sent to the provider, and Served were
	// answered with what they asked for.
	Requests  int64 `json:"requests"`
	Forwarded int64 `json:"forwarded"`
	Served    int64 `json:"served"`
	// Refused counts the others, by the code that they were told.
	Refused map[string]int64 `json:"refused"`
	// Tokens were billed by the provider, of both directions.
	Tokens int64 `json:"tokens"`
}

// Figure is one number.
type Figure struct {
	Measure Measure `json:"figure"`
	Name    string  `json:"name"`
	Unit    string  `json:"unit"`
	Value   float64 `json:"value"`
	// Low and High are the ends of the accepted range. Absent: that side is open.
	Low  *float64 `json:"low"`
	High *float64 `json:"high"`
	OK   bool     `json:"ok"`
}

// Figure is the one of that measure.
func (o *Outcome) Figure(m Measure) (Figure, bool) {
	for _, f := range o.Figures {
		if f.Measure == m {
			return f, true
		}
	}
	return Figure{}, false
}

// Missed are the figures that are outside their range.
func (o *Outcome) Missed() (missed []Figure) {
	for _, f := range o.Figures {
		if !f.OK {
			missed = append(missed, f)
		}
	}
	return missed
}

// open is an end of a range that is none.
var open = math.Inf(1)

// within adds a figure that has to be from low to high. -open and open are no
// bound.
func (o *Outcome) within(m Measure, value, low, high float64) {
	name, unit := m.Name()
	o.Add(Figure{Measure: m, Name: name, Unit: unit, Value: value}, low, high)
}

// Add adds a figure with a value, which has to be from low to high. Infinities are no
// bound.
func (o *Outcome) Add(f Figure, low, high float64) {
	f.OK = f.Value >= low && f.Value <= high
	f.Value = rounded(f.Value)
	if low > -open {
		f.Low = &low
	}
	if high < open {
		f.High = &high
	}
	o.Figures = append(o.Figures, f)
}

// show adds a figure that may be anything.
func (o *Outcome) show(m Measure, value float64) { o.within(m, value, -open, open) }

// exactly adds a figure that can be only one number.
func (o *Outcome) exactly(m Measure, value, want int) {
	o.within(m, float64(value), float64(want), float64(want))
}

// rounded leaves six digits that say something, so that architectures with other
// instructions for floats print the same.
func rounded(value float64) float64 {
	if value == 0 {
		return 0
	}
	scale := math.Pow(10, 5-math.Floor(math.Log10(math.Abs(value))))
	return math.Round(value*scale) / scale
}

// Timeline counts calls by slots of time from the start.
type Timeline struct {
	SlotMS float64 `json:"slot_ms"`
	// Admitted and Refused are by the provider.
	Admitted []int64 `json:"admitted"`
	Refused  []int64 `json:"refused"`
	// Waiting is how many requests waited at gateways in the middle of each slot. Absent
	// where nobody looked.
	Waiting []int64 `json:"waiting,omitempty"`
}

// watched is a model that keeps a timeline.
type watched struct {
	provider.Model
	slot     time.Duration
	timeline *Timeline
}

// watch keeps the calls at a model in slots, until span.
func (o *Outcome) watch(model provider.Model, slot, span time.Duration) *watched {
	if o.Timeline == nil {
		o.Timeline = &Timeline{
			SlotMS:   float64(slot) / float64(time.Millisecond),
			Admitted: make([]int64, span/slot), Refused: make([]int64, span/slot),
		}
	}
	return &watched{Model: model, slot: slot, timeline: o.Timeline}
}

// Ask asks the model and counts.
func (w *watched) Ask(now time.Duration, call provider.Call) provider.Answer {
	answer := w.Model.Ask(now, call)
	if at := int(now / w.slot); at < len(w.timeline.Admitted) {
		if answer.OK {
			w.timeline.Admitted[at]++
		} else {
			w.timeline.Refused[at]++
		}
	}
	return answer
}
