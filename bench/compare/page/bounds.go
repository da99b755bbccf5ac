package page

import (
	"fmt"
	"slices"

	"github.com/quorlease/quorlease/bench/bound"
	"github.com/quorlease/quorlease/bench/plot"
	"github.com/quorlease/quorlease/bench/report"
	"github.com/quorlease/quorlease/bench/stat"
)

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
	{
		slug: "consensus-unary-echo", name: "consensus, unary, over echo",
		of: "consensus-unary", beside: "echo-unary", least: 0.33,
	},
	{
		slug: "consensus-session-echo", name: "consensus, session, over stream echo",
		of: "consensus-session", beside: "echo-stream", least: 0.12,
	},
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
func (r *Result) judge() []bound.Bound {
	bounds := []bound.Bound{}
	for i := range figures {
		bounds = append(bounds, figures[i].judge(r))
	}
	return append(append(bounds, r.unanswered()...), r.killed()...)
}

// unit is that of a figure by itself.
func (f *figure) unit() string {
	switch f.what {
	case rate:
		return "/s"
	case latency:
		return "ms"
	case processor:
		return "us"
	default:
		return ""
	}
}

func (f *figure) judge(r *Result) bound.Bound {
	given := func(value float64) *float64 {
		if value == 0 {
			return nil
		}
		return &value
	}
	b := bound.Bound{
		Bound: f.slug, Name: f.name, Least: given(f.least), Most: given(f.most), Aim: given(f.aim),
		Required: r.requires(f.of) && (f.beside == "" || r.requires(f.beside)),
	}
	binds := !r.Settings.Hasty
	ours, why := r.worth(f.of, f)
	if why != "" {
		return b.Judge(nil, why, binds)
	}
	spread := stat.SpreadOf(ours)
	if f.beside == "" {
		b.Unit = f.unit()
		return b.Judge(&spread, "", binds)
	}
	theirs, why := r.worth(f.beside, f)
	if why != "" {
		return b.Judge(nil, why, binds)
	}
	ratios := make([]float64, min(len(ours), len(theirs)))
	for n := range ratios {
		ratios[n] = ours[n] / theirs[n]
	}
	b.Ours = &bound.Term{Unit: f.unit(), Got: spread}
	b.Beside = &bound.Term{Name: r.side(f.beside).Name, Unit: f.unit(), Got: stat.SpreadOf(theirs)}
	ratio := stat.SpreadOf(ratios)
	return b.Judge(&ratio, "", binds)
}

// requires says whether a side is this program's, the echo's, or a required system's.
// What is nobody's is required by nobody.
func (r *Result) requires(slug string) bool {
	side := r.side(slug)
	if side == nil {
		return slices.ContainsFunc(r.Missing, func(m Missing) bool {
			return systemOf[slug] == m.System && slices.Contains(r.Settings.Required, m.System)
		})
	}
	return side.System == own || side.System == echo || slices.Contains(r.Settings.Required, side.System)
}

// The systems that need nobody else's program.
const (
	own  = "quorlease"
	echo = "echo"
)

// systemOf are the systems of others whose sides are in figures.
var systemOf = map[string]string{
	"ratelimit": "ratelimit", "redis-memory-pipelined": "redis-memory", "redis-memory-single": "redis-memory",
	"redis-always-pipelined": "redis-always", "gubernator": "gubernator", "etcd-put": "etcd", "etcd-take": "etcd",
}

// refusedMost is the part of its questions that a side may refuse, or leave without an
// answer, for its figures to say something: all buckets are full.
const refusedMost = 0.001

// worth is a figure of every round of a side, or why there is none. One who refuses what
// he is asked for does less, or does nothing: to be compared with him is no merit.
func (r *Result) worth(slug string, f *figure) (rounds []float64, why string) {
	side := r.side(slug)
	if side == nil {
		for i := range r.Missing {
			if m := &r.Missing[i]; m.System == systemOf[slug] {
				return nil, m.System + ": " + m.Why
			}
		}
		return nil, slug + " was not run"
	}
	if len(side.Rounds) == 0 {
		return nil, slug + " was not run"
	}
	for n := range side.Rounds {
		round := &side.Rounds[n]
		if round.Granted == 0 {
			return nil, fmt.Sprintf("%s granted nothing in round %d", slug, n+1)
		}
		if f.what == processor && round.CPU == nil {
			return nil, fmt.Sprintf("the processor time of %s in round %d is not known", slug, n+1)
		}
		rounds = append(rounds, f.value(round))
	}
	if part := refused(side.Rounds); side.System != own && part > refusedMost {
		return nil, fmt.Sprintf("%s refused or failed %s of what it was asked for", slug, plot.Number(part))
	}
	return rounds, ""
}

// refused is the part of the questions that were denied or failed.
func refused(rounds []report.Side) float64 {
	var not, all int64
	for n := range rounds {
		not += rounds[n].Denied + rounds[n].Failed
		all += rounds[n].Denied + rounds[n].Failed + rounds[n].Granted
	}
	if all == 0 {
		return 1
	}
	return float64(not) / float64(all)
}

// value is the figure in one round.
func (f *figure) value(s *report.Side) float64 {
	switch f.what {
	case latency:
		return s.P99
	case held:
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

// unanswered holds this program's own sides to what others are held to.
func (r *Result) unanswered() []bound.Bound {
	worst, seen := stat.Spread{}, false
	for i := range r.Sides {
		side := &r.Sides[i]
		if side.System != own || len(side.Rounds) == 0 {
			continue
		}
		var parts []float64
		for n := range side.Rounds {
			parts = append(parts, refused(side.Rounds[n:n+1]))
		}
		if spread := stat.SpreadOf(parts); !seen || spread.Median > worst.Median {
			worst, seen = spread, true
		}
	}
	if !seen {
		return nil
	}
	most := refusedMost
	return []bound.Bound{bound.Bound{
		Bound: "refused", Name: "Quorlease: part of the questions that was refused or failed, on its worst side", Most: &most,
	}.Judge(&worst, "", !r.Settings.Hasty)}
}

// killed is what this program granted too many over a crash. No length excuses that.
func (r *Result) killed() (bounds []bound.Bound) {
	for i := range r.Trials {
		t := &r.Trials[i]
		if t.Trial != ConsensusTrial && t.Trial != EscrowTrial {
			continue
		}
		none := 0.0
		b := bound.Bound{
			Bound: t.Trial + "-killed-over", Name: t.Name + ", killed: tokens over-admitted", Most: &none, Required: true,
		}
		if t.Failed != "" {
			bounds = append(bounds, b.Judge(nil, t.Failed, true))
			continue
		}
		over := stat.SpreadOf([]float64{float64(t.Over)})
		bounds = append(bounds, b.Judge(&over, "", true))
	}
	return bounds
}

// Missed says, a line each, which guarantee broke and which bound was missed.
func (r *Result) Missed() []string {
	s := r.Section()
	return s.Missed()
}

// The trials that are held to G1.
const (
	ConsensusTrial = "consensus"
	EscrowTrial    = "escrow"
)
