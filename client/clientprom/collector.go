// Package clientprom exports a client's figures to Prometheus. It is apart from
// the client so that programs without Prometheus are built without it.
package clientprom

import (
	"cmp"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Source is a client, as far as its figures go. Every method is called at each
// scrape, possibly by several at once, and must not block.
type Source interface {
	// FailOpen reports whether the client decides by itself now.
	FailOpen() bool
	// EachAdmitted calls yield with the tokens, over all keys and dimensions, that
	// the client has admitted by itself so far, for each limit once.
	EachAdmitted(yield func(limit string, tokens int64))
	// EachDecision calls yield with how many decisions there were so far, for each
	// source ("consensus", "escrow", "node", "local") and decision ("granted",
	// "denied").
	EachDecision(yield func(source, decision string, count int64))
	// EachShare calls yield with the part of a limit, 0 to 1, that the client may use while
	// nobody answers, for each limit once of which the authority has promised a part.
	EachShare(yield func(limit string, part float64))
}

// other is the label of whatever is one too many, or not known.
const other = "other"

// limitsMax bounds the series of limits. Their names are the operator's, who
// should have fewer; the ones that come later are counted together.
const limitsMax = 200

var (
	sources   = []string{"consensus", "escrow", "local", "node"}
	decisions = []string{"granted", "denied"}
)

// Collector is a prometheus.Collector. It is safe for concurrent use.
type Collector struct {
	source                                Source
	failOpen, admitted, decisions, shares *prometheus.Desc

	mu struct {
		sync.Mutex
		// limits have a series of their own. They keep it, so that no counter falls.
		limits map[string]bool
	}
}

// New returns a collector of one client's figures. Labels are added to every
// series: where a process has several clients, they tell them apart. Register it
// with a prometheus.Registerer.
func New(source Source, labels prometheus.Labels) *Collector {
	c := &Collector{
		source: source,
		failOpen: prometheus.NewDesc("quorlease_client_fail_open",
			"1 while the client decides by itself because nobody answers.", nil, labels),
		admitted: prometheus.NewDesc("quorlease_client_fail_open_admitted_total",
			"Tokens that the client has admitted by itself, by limit.", []string{"limit"}, labels),
		decisions: prometheus.NewDesc("quorlease_client_decisions_total",
			"Decisions, by who made them and what they were.", []string{"source", "decision"}, labels),
		shares: prometheus.NewDesc("quorlease_client_share_ratio",
			"Part of a limit that the client may use while nobody answers.", []string{"limit"}, labels),
	}
	c.mu.limits = make(map[string]bool)
	return c
}

// Describe tells the names of the series.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	to <- c.failOpen
	to <- c.admitted
	to <- c.decisions
	to <- c.shares
}

// Collect reads the figures. Every combination of source and decision is there
// from the beginning, so that its rate can be computed from the first one on.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	open := 0.0
	if c.source.FailOpen() {
		open = 1
	}
	to <- prometheus.MustNewConstMetric(c.failOpen, prometheus.GaugeValue, open)
	for limit, tokens := range c.byLimit() {
		to <- prometheus.MustNewConstMetric(c.admitted, prometheus.CounterValue, float64(tokens), limit)
	}
	for which, count := range c.byDecision() {
		to <- prometheus.MustNewConstMetric(c.decisions, prometheus.CounterValue, float64(count), which[0], which[1])
	}
	c.source.EachShare(func(limit string, part float64) {
		// Parts of several limits have no sum.
		if c.label(limit) == limit {
			to <- prometheus.MustNewConstMetric(c.shares, prometheus.GaugeValue, part, limit)
		}
	})
}

func (c *Collector) byLimit() map[string]int64 {
	type admitted struct {
		limit  string
		tokens int64
	}
	var all []admitted
	c.source.EachAdmitted(func(limit string, tokens int64) { all = append(all, admitted{limit, tokens}) })
	// In one order, so that the same limits get a series in every process.
	slices.SortFunc(all, func(a, b admitted) int { return cmp.Compare(a.limit, b.limit) })
	sums := make(map[string]int64)
	for _, a := range all {
		sums[c.label(a.limit)] += a.tokens
	}
	return sums
}

// label is the name of a limit that has a series, or gets one, else other.
func (c *Collector) label(limit string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.mu.limits[limit] && len(c.mu.limits) >= limitsMax {
		return other
	}
	c.mu.limits[limit] = true
	return limit
}

func (c *Collector) byDecision() map[[2]string]int64 {
	counts := make(map[[2]string]int64)
	for _, source := range sources {
		for _, decision := range decisions {
			counts[[2]string{source, decision}] = 0
		}
	}
	c.source.EachDecision(func(source, decision string, count int64) {
		counts[[2]string{known(sources, source), known(decisions, decision)}] += count
	})
	return counts
}

// known is a name that is among those known, else other.
func known(names []string, name string) string {
	if slices.Contains(names, name) {
		return name
	}
	return other
}
