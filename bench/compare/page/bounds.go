package page

import (
	"fmt"

	"github.com/quorlease/quorlease/bench/report"
	"github.com/quorlease/quorlease/bench/stat"
)

// Bound is a figure that this program is held to, or aims at.
type Bound struct {
	Bound string `json:"bound"`
	Name  string `json:"name"`
	// Unit of the figures; empty for ratios and parts.
	Unit string `json:"unit"`
	// Least or Most is the bound; neither: the figure is there to be read. Aim is
	// what would be good.
	Least *float64 `json:"least"`
	Most  *float64 `json:"most"`
	Aim   *float64 `json:"aim"`
	// Got is nil where a side of it was not measured.
	Got *stat.Spread `json:"got"`
	// OK: the median keeps the bound, or there is nothing to keep.
	OK bool `json:"ok"`
}

// What a figure is of.
type quantity int

const (
	rate quantity = iota
	latency
	processor
	// held is the part of the grants that came from escrow.
	held
)

// figure is one that is looked at. With beside it is a ratio.
type figure struct {
	slug, name, of, beside string
	what                   quantity
	least, most, aim       float64
}

// figures are all of them: bounds first, then like with like to be read.
var figures = []figure{
	{
		slug: "escrow-unary-held", name: "escrow, unary: part granted from escrow",
		of: "escrow-unary", what: held, least: 0.99,
	},
	{
		slug: "escrow-session-held", name: "escrow, session: part granted from escrow",
		of: "escrow-session", what: held, least: 0.99,
	},
	{
		slug: "escrow-unary-echo", name: "escrow, unary, over echo",
		of: "escrow-unary", beside: "echo-unary", least: 0.75, aim: 0.9,
	},
	{
		slug: "escrow-unary-p99", name: "escrow, unary: p99 over echo's",
		of: "escrow-unary", beside: "echo-unary", what: latency, most: 1.4,
	},
	{
		slug: "escrow-unary-ratelimit", name: "escrow, unary, over ratelimit + Redis",
		of: "escrow-unary", beside: "ratelimit", least: 2,
	},
	{
		slug: "escrow-session-echo", name: "escrow, session, over stream echo",
		of: "escrow-session", beside: "echo-stream", least: 0.6, aim: 0.8,
	},
	{slug: "escrow-session-p99", name: "escrow, session: p99", of: "escrow-session", what: latency, most: 2.5},
	{
		slug: "escrow-session-ratelimit", name: "escrow, session, over ratelimit + Redis",
		of: "escrow-session", beside: "ratelimit", least: 7,
	},
	{
		slug: "escrow-session-redis", name: "escrow, session, over pipelined Redis script without AOF",
		of: "escrow-session", beside: "redis-memory-pipelined", least: 1.2, aim: 1.5,
	},
	{
		slug: "escrow-session-cpu", name: "escrow, session: servers' processor time a decision",
		of: "escrow-session", what: processor, most: 6, aim: 4,
	},
	{slug: "escrow-paced-p99", name: "escrow, session, paced: p99", of: "escrow-paced", what: latency, most: 1},
	{slug: "consensus-session-rate", name: "consensus, session", of: "consensus-session", least: 45_000},
	{slug: "consensus-session-p99", name: "consensus, session: p99", of: "consensus-session", what: latency, most: 8},
	{
		slug: "consensus-session-put", name: "consensus, session, over etcd's put",
		of: "consensus-session", beside: "etcd-put", least: 3,
	},
	{
		slug: "consensus-session-take", name: "consensus, session, over etcd's take",
		of: "consensus-session", beside: "etcd-take", least: 15,
	},

	{slug: "consensus-unary-put", name: "consensus, unary, over etcd's put", of: "consensus-unary", beside: "etcd-put"},
	{slug: "consensus-unary-take", name: "consensus, unary, over etcd's take", of: "consensus-unary", beside: "etcd-take"},
	{
		slug: "consensus-session-redis", name: "consensus, session, over pipelined Redis script with appendfsync always",
		of: "consensus-session", beside: "redis-always-pipelined",
	},
	{
		slug: "escrow-unary-redis", name: "escrow, unary, over Redis script without AOF, a call a connection",
		of: "escrow-unary", beside: "redis-memory-single",
	},
	{slug: "escrow-unary-gubernator", name: "escrow, unary, over Gubernator", of: "escrow-unary", beside: "gubernator"},
}

// judge works out every figure.
func (r *Result) judge() []Bound {
	bounds := []Bound{}
	for i := range figures {
		bounds = append(bounds, figures[i].judge(r))
	}
	return bounds
}

func (f *figure) judge(r *Result) Bound {
	b := Bound{Bound: f.slug, Name: f.name, OK: true, Got: f.got(r)}
	switch {
	case f.beside != "" || f.what == held:
	case f.what == rate:
		b.Unit = "/s"
	case f.what == latency:
		b.Unit = "ms"
	case f.what == processor:
		b.Unit = "us"
	}
	given := func(value float64) *float64 {
		if value == 0 {
			return nil
		}
		return &value
	}
	if !r.Settings.Hasty {
		b.Least, b.Most, b.Aim = given(f.least), given(f.most), given(f.aim)
	}
	if b.Got != nil {
		b.OK = (b.Least == nil || b.Got.Median >= f.least) && (b.Most == nil || b.Got.Median <= f.most)
	}
	return b
}

// got is the figure, or nil.
func (f *figure) got(r *Result) *stat.Spread {
	side := r.side(f.of)
	if side == nil || len(side.Rounds) == 0 {
		return nil
	}
	if f.beside != "" {
		beside := r.side(f.beside)
		if beside == nil {
			return nil
		}
		return over(side, beside, f.value)
	}
	if f.what == processor {
		return side.Summary.CPU
	}
	spread := stat.SpreadOf(each(side.Rounds, f.value))
	return &spread
}

func (f *figure) value(s *report.Side) float64 {
	switch f.what {
	case latency:
		return s.P99
	case held:
		if s.Granted == 0 {
			return 0
		}
		return float64(s.Escrow) / float64(s.Granted)
	case processor:
		if s.CPU == nil {
			return 0
		}
		return *s.CPU
	default:
		return s.DecisionsPerSecond
	}
}

// bound says what the figure must be.
func (b *Bound) bound() string {
	var text string
	switch {
	case b.Least != nil:
		text = "≥ " + number(*b.Least)
	case b.Most != nil:
		text = "≤ " + number(*b.Most)
	default:
		return ""
	}
	if b.Unit != "" && b.Unit != "/s" {
		text += " "
	}
	text += b.Unit
	if b.Aim != nil {
		text += fmt.Sprintf(" (aim %s)", number(*b.Aim))
	}
	return text
}

// value is what it was.
func (b *Bound) value() string {
	if b.Got == nil {
		return "not measured"
	}
	unit := b.Unit
	if unit != "" && unit != "/s" {
		unit = " " + unit
	}
	return report.Spread(*b.Got, unit)
}

// verdict is one word.
func (b *Bound) verdict() string {
	switch {
	case b.Least == nil && b.Most == nil:
		return ""
	case b.Got == nil:
		return "not measured"
	case !b.OK:
		return "MISSED"
	default:
		return "kept"
	}
}

// Missed says, a line each, which bound was missed, and where somebody was granted
// what this program must not grant.
func (r *Result) Missed() (lines []string) {
	for i := range r.Bounds {
		if b := &r.Bounds[i]; !b.OK {
			lines = append(lines, fmt.Sprintf("%s: %s is not %s", b.Name, b.value(), b.bound()))
		}
	}
	for i := range r.Trials {
		t := &r.Trials[i]
		switch {
		case !ours(t.Trial):
		case t.Failed != "":
			lines = append(lines, fmt.Sprintf("%s, killed: %s", t.Name, t.Failed))
		case t.Over > 0:
			lines = append(lines, fmt.Sprintf("%s, killed: %s tokens over-admitted, not 0", t.Name, grouped(t.Over)))
		}
	}
	return lines
}

// The trials that are held to G1.
const (
	ConsensusTrial = "consensus"
	EscrowTrial    = "escrow"
)

func ours(trial string) bool { return trial == ConsensusTrial || trial == EscrowTrial }
