package disturb

import (
	"fmt"
	"time"

	"github.com/quorlease/quorlease/bench/bound"
	"github.com/quorlease/quorlease/bench/report"
	"github.com/quorlease/quorlease/bench/stat"
)

// Result is what callers saw. Its JSON is documented in docs/reference/bench.md: a field
// is added, never renamed.
type Result struct {
	// MeasuredRate and OpenRate are how many grants a second there were at most, in a closed
	// and in an open loop, OfferedRate how many questions a second about buckets that are
	// not short: a part of what an open loop can have.
	MeasuredRate float64 `json:"measured_per_second"`
	OpenRate     float64 `json:"open_per_second"`
	OfferedRate  float64 `json:"offered_per_second"`
	Hasty        bool    `json:"hasty"`
	// Phases are the faults, the time before them first.
	Phases []Phase        `json:"phases"`
	Slacks []Slack        `json:"slacks"`
	Checks []report.Check `json:"checks"`
	Bounds []bound.Bound  `json:"bounds"`
	// OK: no check failed and no bound was missed.
	OK bool `json:"ok"`
}

// Phase is one fault and what callers saw of it.
type Phase struct {
	Phase string `json:"phase"`
	Name  string `json:"name"`
	// Times is how often it was done; Why says why it was not.
	Times   int     `json:"times"`
	Why     string  `json:"why"`
	Seconds float64 `json:"seconds"`
	// Plenty is of buckets that are not short, Short of one that lies near nothing, Exact
	// of one of which every grant is a log entry's.
	Plenty *Seen `json:"plenty"`
	Short  *Seen `json:"short"`
	Exact  *Seen `json:"exact"`
	// Alerts that clients raised.
	Alerts int64 `json:"alerts"`
	// LateMS is by how much the callers themselves were late at most, in milliseconds: the
	// machine's doing, which is part of every wait.
	LateMS float64 `json:"late_ms"`
}

// Seen is what callers of one kind of bucket saw. Waits are in milliseconds, from when a
// question was meant to be asked.
type Seen struct {
	Asked   int64 `json:"asked"`
	Granted int64 `json:"granted"`
	Escrow  int64 `json:"escrow"`
	Denied  int64 `json:"denied"`
	// Local is what the client decided because nobody answered, Failed what had no answer.
	Local  int64   `json:"local"`
	Failed int64   `json:"failed"`
	P50    float64 `json:"p50_ms"`
	P99    float64 `json:"p99_ms"`
	Max    float64 `json:"max_ms"`
}

// Slack is by how much spending of a limit may trail debiting (G2), and the most by which
// it can have: as a time, and as what the rate hands out meanwhile.
type Slack struct {
	Limit       string  `json:"limit"`
	SlackMS     float64 `json:"slack_ms"`
	SlackTokens int64   `json:"slack_tokens"`
	SeenMS      float64 `json:"seen_ms"`
	SeenTokens  int64   `json:"seen_tokens"`
}

// What is kept.
const (
	// waitMost is how long a grant of a bucket that is not short may take while the leader
	// is killed, in milliseconds, and silentMost while a node is stopped or cut off: its
	// client waits 100 ms for it, and then asks another one.
	waitMost, silentMost = 50, 150
	// p99Most is how many times the undisturbed p99 there may be.
	p99Most = 3
	// Failover is how long a change of leader takes at most: what nodes hold is meant to
	// last for at least as long. Beyond it who asks for a bucket that is short has an
	// answer in failoverSpare.
	Failover      = 1500 * time.Millisecond
	failoverSpare = 500 * time.Millisecond
	// silence is how long who asks for such a bucket waits for a leader that is silent: half
	// of what it waits in all. There is another leader by then.
	silence = shortPatience / 2
)

func (s *seen) shown() *Seen {
	return &Seen{
		Asked: s.asked, Granted: s.granted, Escrow: s.escrow, Denied: s.denied, Local: s.alone, Failed: s.failed,
		P50: ms(s.waits.At(50)), P99: ms(s.waits.At(99)), Max: ms(s.longest),
	}
}

// judge fills in what follows from the history.
func (r *run) judge() {
	result := r.result
	result.Hasty = r.config.Hasty
	result.MeasuredRate, result.OpenRate, result.OfferedRate = r.closed, r.open, r.asked
	calm := phase{fault: fault{slug: "calm", name: "undisturbed"}, span: r.calm}
	for _, p := range append([]phase{calm}, r.phases...) {
		shown := Phase{Phase: p.slug, Name: p.name, Times: p.times, Why: p.why, Alerts: p.alerts}
		if p.why == "" {
			shown.Seconds = time.Duration(p.span.until - p.span.from).Seconds()
			shown.Plenty, shown.Short, shown.Exact = r.seen(r.plenty, p), r.seen(r.short, p), r.seen(r.exact, p)
			shown.LateMS = ms(r.plenty.history.late(p.span))
		}
		result.Phases = append(result.Phases, shown)
	}
	for i := range result.Phases {
		result.Bounds = append(result.Bounds, result.bounds(&result.Phases[i])...)
	}
	lost, none := float64(r.lost), 0.0
	result.Bounds = append(result.Bounds, bound.Bound{
		Bound: "lost", Name: "leases that were acknowledged and are not in the log", Most: &none,
	}.Judge(one(lost), "", true))
	for i := range result.Slacks {
		s := &result.Slacks[i]
		result.Bounds = append(result.Bounds, bound.Bound{
			Bound: "slack-" + s.Limit, Unit: "s", Most: seconds(s.SlackMS),
			Name: fmt.Sprintf("%s: spent above burst + rate·d at most, in time of the rate (G2: the slack)", s.Limit),
		}.Judge(one(s.SeenMS/1000), "", true))
	}
	result.OK = len(result.Missed()) == 0
}

func one(value float64) *stat.Spread { return &stat.Spread{Median: value, Min: value, Max: value} }

func seconds(ms float64) *float64 {
	s := ms / 1000
	return &s
}

func (r *run) seen(s *stream, p phase) *Seen {
	sum := s.history.in(p.span)
	return sum.shown()
}

// figure is one of a phase, and what it may be at most.
type figure struct {
	slug, name, unit string
	most             float64
	got              func() float64
	// binds: it is held to that, or else there to be read.
	binds bool
}

// bounds are the figures of a phase. Those of the time before the first fault are there to
// be read.
func (r *Result) bounds(p *Phase) (list []bound.Bound) {
	calm, kills := p.Phase == "calm", p.Phase == "kills"
	wait, short := float64(silentMost), ms(silence+failoverSpare)
	if kills {
		wait, short = waitMost, ms(Failover+failoverSpare)
	}
	p99 := figure{"p99", "p99, not short", "ms", 0, func() float64 { return p.Plenty.P99 }, false}
	if !calm {
		p99 = figure{"p99", "p99 over the undisturbed, not short", "", p99Most, func() float64 {
			return p.Plenty.P99 / max(r.Phases[0].Plenty.P99, 0.001)
		}, kills}
	}
	for _, f := range []figure{
		{"wait", "longest wait, not short", "ms", wait, func() float64 { return p.Plenty.Max }, !calm},
		{"refused", "not granted by a node, not short", "", 0, func() float64 {
			return float64(p.Plenty.Denied + p.Plenty.Local + p.Plenty.Failed)
		}, !calm},
		{"alerts", "alerts that clients raised", "", 0, func() float64 { return float64(p.Alerts) }, !calm},
		p99,
		{"short-wait", "longest wait, short", "ms", short, func() float64 { return p.Short.Max }, !calm},
		{"exact-wait", "longest wait, every grant an entry", "ms", short, func() float64 { return p.Exact.Max }, !calm},
	} {
		b := bound.Bound{Bound: p.Phase + "-" + f.slug, Name: p.Name + ": " + f.name, Unit: f.unit, Most: &f.most}
		binds := f.binds && !r.Hasty
		switch void := r.void(); {
		case p.Why != "":
			b = b.Judge(nil, p.Why, binds)
		case void != "" && binds:
			b.Required = true
			b = b.Judge(nil, void, binds)
		default:
			b = b.Judge(one(f.got()), "", binds)
		}
		list = append(list, b)
	}
	return list
}

// void says why nothing can be said of any wait: while nothing was done to the nodes this
// program itself was kept from asking for longer than a grant may take.
func (r *Result) void() string {
	if late := r.Phases[0].LateMS; late > waitMost {
		return fmt.Sprintf("with nothing done the callers themselves were late by %.0f ms: "+
			"the machine was busy with something else", late)
	}
	return ""
}

// Missed says, a line each, which guarantee broke and which bound was missed.
func (r *Result) Missed() (lines []string) {
	for _, c := range r.Checks {
		if !c.OK {
			lines = append(lines, fmt.Sprintf("%s broken, by %s: %s", c.Guarantee, c.By, c.Text))
		}
	}
	return append(lines, bound.Lines(r.Bounds)...)
}
