package report

import (
	"fmt"

	"github.com/quorlease/quorlease/bench/stat"
)

// Result is one run. Its JSON is documented in docs/reference/bench.md: a field is
// added, never renamed.
type Result struct {
	// Version of the program that was measured.
	Version  string   `json:"version"`
	Settings Settings `json:"settings"`
	// Rounds lie one after another; each measures both sides.
	Rounds []Round `json:"rounds"`
	// Quorlease and Echo sum up the rounds.
	Quorlease Summary  `json:"quorlease"`
	Echo      *Summary `json:"echo"`
	// Ratio is decisions a second over echoes a second, round by round.
	Ratio *stat.Spread `json:"ratio"`
	// Failures counts calls without an answer, by what was said.
	Failures map[string]int64 `json:"failures"`
	Faults   []Fault          `json:"faults"`
	Checks   []Check          `json:"checks"`
	Bounds   []Bound          `json:"bounds"`
	// OK: no check failed and no bound was missed.
	OK bool `json:"ok"`
}

// Settings are what was run.
type Settings struct {
	Path         string  `json:"path"`
	Callers      int     `json:"callers"`
	Keys         int     `json:"keys"`
	Distribution string  `json:"distribution"`
	Loop         string  `json:"loop"`
	OfferedRate  float64 `json:"offered_per_second"`
	Arrivals     string  `json:"arrivals"`
	OnLoss       string  `json:"on_quorum_loss"`
	// Exact: the limit gives no escrow.
	Exact      bool  `json:"exact"`
	LimitRate  int64 `json:"limit_per_second"`
	LimitBurst int64 `json:"limit_burst"`
	// SlackMS is the limit's slack (G2) in milliseconds.
	SlackMS  float64 `json:"slack_ms"`
	Rounds   int     `json:"rounds"`
	WarmupMS float64 `json:"warmup_ms"`
	LengthMS float64 `json:"length_ms"`
	// Nodes is how many processes the run started; 0: it used given endpoints.
	Nodes     int    `json:"nodes"`
	Processor int    `json:"processors"`
	Platform  string `json:"platform"`
}

// Round is both sides, measured one after the other.
type Round struct {
	Quorlease Side     `json:"quorlease"`
	Echo      *Side    `json:"echo"`
	Ratio     *float64 `json:"ratio"`
}

// Side is one side of one round. Latencies are in milliseconds, in an open loop
// from the intended start.
type Side struct {
	Granted int64 `json:"granted"`
	Denied  int64 `json:"denied"`
	Failed  int64 `json:"failed"`
	// Local counts decisions that the client made by itself. They are among the
	// granted and denied ones.
	Local int64 `json:"local"`
	// Escrow counts grants from tokens that a node held: no log entry was made for
	// them.
	Escrow             int64   `json:"escrow"`
	Backlog            int64   `json:"backlog"`
	Seconds            float64 `json:"seconds"`
	DecisionsPerSecond float64 `json:"decisions_per_second"`
	GrantsPerSecond    float64 `json:"grants_per_second"`
	P50                float64 `json:"p50_ms"`
	P99                float64 `json:"p99_ms"`
	P999               float64 `json:"p999_ms"`
	Max                float64 `json:"max_ms"`
	// Fairness is Jain's index over what the callers were granted, 1/callers to 1.
	Fairness float64 `json:"fairness"`
	// CPU is the servers' processor time for one decision, in microseconds. Absent
	// where it is not known.
	CPU *float64 `json:"cpu_us"`
	// Percentiles are points of the latency's distribution.
	Percentiles []Point `json:"percentiles"`
	// Timeline counts by slots of 100 ms.
	Timeline Timeline `json:"timeline"`
}

// Point says that percent of all calls took at most MS milliseconds.
type Point struct {
	Percent float64 `json:"percent"`
	MS      float64 `json:"ms"`
}

// Timeline holds one number a slot.
type Timeline struct {
	SlotMS  float64 `json:"slot_ms"`
	Granted []int64 `json:"granted"`
	Denied  []int64 `json:"denied"`
	Failed  []int64 `json:"failed"`
	Local   []int64 `json:"local"`
}

// Summary is one side over all rounds.
type Summary struct {
	Granted            int64        `json:"granted"`
	Denied             int64        `json:"denied"`
	Failed             int64        `json:"failed"`
	Local              int64        `json:"local"`
	Escrow             int64        `json:"escrow"`
	Backlog            int64        `json:"backlog"`
	DecisionsPerSecond stat.Spread  `json:"decisions_per_second"`
	GrantsPerSecond    stat.Spread  `json:"grants_per_second"`
	P50                stat.Spread  `json:"p50_ms"`
	P99                stat.Spread  `json:"p99_ms"`
	P999               stat.Spread  `json:"p999_ms"`
	Max                stat.Spread  `json:"max_ms"`
	Fairness           stat.Spread  `json:"fairness"`
	CPU                *stat.Spread `json:"cpu_us"`
}

// Fault is something that was done to the nodes, and when: milliseconds since the
// measured part of the round began.
type Fault struct {
	AtMS float64 `json:"at_ms"`
	What string  `json:"what"`
}

// Check is a guarantee that was looked at.
type Check struct {
	// Guarantee is its number, G1 or G2.
	Guarantee string `json:"guarantee"`
	// By says what it was looked at with.
	By   string `json:"by"`
	OK   bool   `json:"ok"`
	Text string `json:"text"`
}

// Bound is one that a flag set.
type Bound struct {
	Flag string  `json:"flag"`
	Want float64 `json:"want"`
	Got  float64 `json:"got"`
	OK   bool    `json:"ok"`
}

// Sum fills in what follows from the rounds, and OK from the checks and bounds.
func (r *Result) Sum() {
	r.Quorlease = summarize(r.Rounds, func(round *Round) *Side { return &round.Quorlease })
	var ratios []float64
	for i := range r.Rounds {
		round := &r.Rounds[i]
		if round.Echo == nil || round.Echo.DecisionsPerSecond == 0 {
			continue
		}
		ratio := round.Quorlease.DecisionsPerSecond / round.Echo.DecisionsPerSecond
		round.Ratio = &ratio
		ratios = append(ratios, ratio)
	}
	if len(ratios) > 0 {
		echo := summarize(r.Rounds, func(round *Round) *Side { return round.Echo })
		spread := stat.SpreadOf(ratios)
		r.Echo, r.Ratio = &echo, &spread
	}
	r.OK = len(r.Broken()) == 0
}

func summarize(rounds []Round, side func(*Round) *Side) Summary {
	sides := make([]*Side, len(rounds))
	for i := range rounds {
		sides[i] = side(&rounds[i])
	}
	return SummaryOf(sides)
}

// SummaryOf sums up the rounds of one side.
func SummaryOf(rounds []*Side) (s Summary) {
	spread := func(value func(*Side) float64) stat.Spread {
		values := make([]float64, 0, len(rounds))
		for _, one := range rounds {
			values = append(values, value(one))
		}
		return stat.SpreadOf(values)
	}
	s.DecisionsPerSecond = spread(func(s *Side) float64 { return s.DecisionsPerSecond })
	s.GrantsPerSecond = spread(func(s *Side) float64 { return s.GrantsPerSecond })
	s.P50 = spread(func(s *Side) float64 { return s.P50 })
	s.P99 = spread(func(s *Side) float64 { return s.P99 })
	s.P999 = spread(func(s *Side) float64 { return s.P999 })
	s.Max = spread(func(s *Side) float64 { return s.Max })
	s.Fairness = spread(func(s *Side) float64 { return s.Fairness })
	known := true
	for _, one := range rounds {
		s.Granted += one.Granted
		s.Denied += one.Denied
		s.Failed += one.Failed
		s.Local += one.Local
		s.Escrow += one.Escrow
		s.Backlog += one.Backlog
		known = known && one.CPU != nil
	}
	if known {
		cpu := spread(func(s *Side) float64 { return *s.CPU })
		s.CPU = &cpu
	}
	return s
}

// Broken says, a line each, which guarantee broke and which bound was missed.
func (r *Result) Broken() (lines []string) {
	for _, c := range r.Checks {
		if !c.OK {
			lines = append(lines, fmt.Sprintf("%s broken, by %s: %s", c.Guarantee, c.By, c.Text))
		}
	}
	for _, b := range r.Bounds {
		if !b.OK {
			lines = append(lines, fmt.Sprintf("--%s %s: got %s", b.Flag, number(b.Want), number(b.Got)))
		}
	}
	return lines
}
