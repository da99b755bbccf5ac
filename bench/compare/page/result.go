package page

import (
	"io"

	"github.com/quorlease/quorlease/bench/bound"
	"github.com/quorlease/quorlease/bench/report"
	"github.com/quorlease/quorlease/bench/sheet"
)

// Result is one comparison. Its JSON is documented in docs/reference/bench.md: a
// field is added, never renamed.
type Result struct {
	// Version of the program that was measured.
	Version  string   `json:"version"`
	Settings Settings `json:"settings"`
	// Sides lie beside one another in every round.
	Sides []Side `json:"sides"`
	// Trials are what each system did when it was killed.
	Trials []Trial `json:"trials"`
	// Missing are systems that were not there.
	Missing []Missing `json:"missing"`
	// Checks of everything that Quorlease granted.
	Checks []report.Check `json:"checks"`
	Bounds []bound.Bound  `json:"bounds"`
	// OK: no guarantee broke and no bound was missed. What was not measured misses none,
	// unless it is required.
	OK bool `json:"ok"`
}

// Settings are what was run.
type Settings struct {
	sheet.Place

	Callers      int     `json:"callers"`
	Keys         int     `json:"keys"`
	Distribution string  `json:"distribution"`
	PacedRate    float64 `json:"paced_per_second"`
	// Required are systems without whose figures the result is not OK.
	Required []string `json:"required"`
	// Hasty: too short for any figure to be held to its bound.
	Hasty    bool    `json:"hasty"`
	Rounds   int     `json:"rounds"`
	WarmupMS float64 `json:"warmup_ms"`
	LengthMS float64 `json:"length_ms"`
}

// Kind says what may be compared with what.
type Kind string

// The kinds.
const (
	// Unary: a call a decision.
	Unary Kind = "unary"
	// Stream: many callers' questions travel together.
	Stream Kind = "stream"
	// Paced: as a stream, in an open loop.
	Paced Kind = "paced"
)

// Side is one way into one system.
type Side struct {
	// Side is its slug.
	Side   string `json:"side"`
	Name   string `json:"name"`
	System string `json:"system"`
	// SystemVersion is the program and its version, where it says one.
	SystemVersion string           `json:"system_version"`
	Kind          Kind             `json:"kind"`
	Rounds        []report.Side    `json:"rounds"`
	Summary       report.Summary   `json:"summary"`
	Failures      map[string]int64 `json:"failures"`
}

// Trial is what a system promises, and what became of it: callers spend everything
// that Keys buckets have, every process is killed, and they spend again.
type Trial struct {
	Trial string `json:"trial"`
	Name  string `json:"name"`
	// Copies and Disk say what holds a decision when its answer is given.
	Copies    string `json:"copies"`
	Disk      string `json:"disk"`
	Keys      int    `json:"keys"`
	Burst     int64  `json:"burst"`
	PerSecond int64  `json:"per_second"`
	// Seconds from the first question to the last answer.
	Seconds float64 `json:"seconds"`
	// Before and After the kill.
	Before int64 `json:"granted_before"`
	After  int64 `json:"granted_after"`
	// Escrow is how many of both a node gave from tokens that it held.
	Escrow int64 `json:"escrow"`
	// Over is how many more than burst + rate·seconds some buckets gave, added up.
	Over int64 `json:"over_admitted"`
	// Failed says why there is no figure. Empty: there is one.
	Failed string `json:"failed"`
}

// Allowed is what one bucket may have given in that time.
func (t *Trial) Allowed() int64 { return t.Burst + int64(float64(t.PerSecond)*t.Seconds) }

// Missing is a system that was not measured.
type Missing struct {
	System string `json:"system"`
	Why    string `json:"why"`
	// How says how to get it. Empty: it was left out.
	How string `json:"how"`
}

// Sum fills in what follows from the rounds: summaries, bounds and OK.
func (r *Result) Sum() {
	for i := range r.Sides {
		side := &r.Sides[i]
		rounds := make([]*report.Side, len(side.Rounds))
		for n := range rounds {
			rounds[n] = &side.Rounds[n]
		}
		side.Summary = report.SummaryOf(rounds)
	}
	r.Bounds = r.judge()
	r.OK = len(r.Missed()) == 0
}

// side finds one by its slug; nil: it was not measured.
func (r *Result) side(slug string) *Side {
	for i := range r.Sides {
		if r.Sides[i].Side == slug {
			return &r.Sides[i]
		}
	}
	return nil
}

// JSON writes the result as one object.
func (r *Result) JSON(w io.Writer) error { return sheet.JSON(w, r) }
