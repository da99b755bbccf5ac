package page

import (
	"io"

	"github.com/quorlease/quorlease/bench/bound"
	"github.com/quorlease/quorlease/bench/report"
	"github.com/quorlease/quorlease/bench/sheet"
	"github.com/quorlease/quorlease/bench/stat"
)

// Result is one run. Its JSON is documented in docs/reference/bench.md: a field is
// added, never renamed.
type Result struct {
	// Version of the program that was measured.
	Version  string   `json:"version"`
	Settings Settings `json:"settings"`
	// Nodes are points by the number of nodes, Keys by that of active buckets, Callers
	// by that of callers. A part that was not run is empty.
	Nodes   []Point `json:"nodes"`
	Keys    []Point `json:"keys"`
	Callers []Point `json:"callers"`
	// Entries are points by the number of buckets that are granted of at a steady rate.
	Entries []Point `json:"entries"`
	// Snapshots are points by the size of the state.
	Snapshots []Snapshot `json:"snapshots"`
	// Checks of all histories.
	Checks []report.Check `json:"checks"`
	// Notes say what a reader has to know of the figures.
	Notes  []string      `json:"notes"`
	Bounds []bound.Bound `json:"bounds"`
	// OK: no guarantee broke and no bound was missed.
	OK bool `json:"ok"`
}

// Settings are what was run.
type Settings struct {
	sheet.Place

	// Share is what part of a processor each node of the first part had. 0: there was
	// no such bound, and Unshared says why.
	Share    float64 `json:"share"`
	Unshared string  `json:"unshared"`
	// Steady is the rate of that, a second.
	Steady float64 `json:"steady_per_second"`
	// Hasty: too short for any figure to be held to its bound.
	Hasty    bool    `json:"hasty"`
	Rounds   int     `json:"rounds"`
	WarmupMS float64 `json:"warmup_ms"`
	LengthMS float64 `json:"length_ms"`
}

// Point is one place on the axis of a part.
type Point struct {
	// At is its place: nodes, keys or callers.
	At       int64 `json:"at"`
	Voters   int   `json:"voters"`
	Learners int   `json:"learners"`
	// Callers ask for Keys.
	Callers  int              `json:"load_callers"`
	Keys     int              `json:"load_keys"`
	Rounds   []Round          `json:"rounds"`
	Summary  Summary          `json:"summary"`
	Failures map[string]int64 `json:"failures"`
}

// Round is one measure of one point.
type Round struct {
	report.Side
	// Generator is how many processors the callers used.
	Generator float64 `json:"generator_cores"`
	// Busiest is how many the node used that used most.
	Busiest float64 `json:"busiest_node_cores"`
	// Entries of the log, a second. 0: not looked at.
	Entries float64 `json:"entries_per_second"`
	// Gap is the longest time between two grants, whoever got them, milliseconds.
	Gap float64 `json:"gap_ms"`
	// Touched is how many buckets were granted of.
	Touched int64 `json:"touched"`
}

// Summary is a point over all rounds.
type Summary struct {
	report.Summary
	Generator stat.Spread `json:"generator_cores"`
	Busiest   stat.Spread `json:"busiest_node_cores"`
	Entries   stat.Spread `json:"entries_per_second"`
	Gap       stat.Spread `json:"gap_ms"`
	Touched   stat.Spread `json:"touched"`
}

// Snapshot is what taking snapshots of a state costs those who wait for entries.
type Snapshot struct {
	// At is how many buckets the state has.
	At      int64 `json:"at"`
	Callers int   `json:"load_callers"`
	// Bytes is the size of the leader's last snapshot.
	Bytes int64 `json:"bytes"`
	// Taken is how many all nodes took meanwhile; applying paused for PauseMean on the
	// average, and never for longer than PauseMost. Milliseconds. The latter is exact
	// where no node took more than one, else as exact as the nodes' histogram.
	Taken     int64   `json:"taken"`
	PauseMean float64 `json:"pause_mean_ms"`
	PauseMost float64 `json:"pause_most_ms"`
	// During is the load while they were taken.
	During report.Side `json:"during"`
}

// Sum fills in what follows from the rounds: summaries, notes, bounds and OK.
func (r *Result) Sum() {
	for _, points := range [][]Point{r.Nodes, r.Keys, r.Callers, r.Entries} {
		for i := range points {
			points[i].sum()
		}
	}
	r.Notes = r.notes()
	r.Bounds = r.judge()
	r.OK = len(r.Missed()) == 0
}

func (p *Point) sum() {
	sides := make([]*report.Side, len(p.Rounds))
	for i := range sides {
		sides[i] = &p.Rounds[i].Side
	}
	p.Summary = Summary{
		Summary:   report.SummaryOf(sides),
		Generator: stat.SpreadOf(p.each(generator)),
		Busiest:   stat.SpreadOf(p.each(func(r *Round) float64 { return r.Busiest })),
		Entries:   stat.SpreadOf(p.each(func(r *Round) float64 { return r.Entries })),
		Gap:       stat.SpreadOf(p.each(func(r *Round) float64 { return r.Gap })),
		Touched:   stat.SpreadOf(p.each(func(r *Round) float64 { return float64(r.Touched) })),
	}
}

// What a round is looked at for.
func rate(r *Round) float64      { return r.GrantsPerSecond }
func generator(r *Round) float64 { return r.Generator }

// processor is 0 where it is not known.
func processor(r *Round) float64 {
	if r.CPU == nil {
		return 0
	}
	return *r.CPU
}

// cores is how many processors all nodes used.
func cores(r *Round) float64 { return processor(r) * r.DecisionsPerSecond / 1e6 }

// held is the part of the grants that came from escrow.
func held(r *Round) float64 {
	if r.Granted == 0 {
		return 0
	}
	return float64(r.Escrow) / float64(r.Granted)
}

func (p *Point) each(of func(*Round) float64) []float64 {
	values := make([]float64, len(p.Rounds))
	for i := range values {
		values[i] = of(&p.Rounds[i])
	}
	return values
}

// over is the spread of a figure of p over that of another, round by round, divided by
// parts. It is nil where there is no such figure.
func (p *Point) over(other *Point, of func(*Round) float64, parts float64) *stat.Spread {
	if other == nil {
		return nil
	}
	var ratios []float64
	for i := range min(len(p.Rounds), len(other.Rounds)) {
		below := of(&other.Rounds[i])
		if below <= 0 {
			return nil
		}
		ratios = append(ratios, of(&p.Rounds[i])/below/parts)
	}
	if len(ratios) == 0 {
		return nil
	}
	spread := stat.SpreadOf(ratios)
	return &spread
}

// at finds a point; nil: it was not measured.
func at(points []Point, place int64) *Point {
	for i := range points {
		if points[i].At == place {
			return &points[i]
		}
	}
	return nil
}

// linear is what p's grants are of those that other's nodes would have given if each
// node added as much.
func (p *Point) linear(other *Point) *stat.Spread {
	if other == nil || other == p {
		return nil
	}
	return p.over(other, rate, float64(p.At)/float64(other.At))
}

// second is the smallest cluster of more than one node.
func (r *Result) second() (smallest *Point) {
	for i := range r.Nodes {
		if p := &r.Nodes[i]; p.At > 1 && (smallest == nil || p.At < smallest.At) {
			smallest = p
		}
	}
	return smallest
}

// JSON writes the result as one object.
func (r *Result) JSON(w io.Writer) error { return sheet.JSON(w, r) }
