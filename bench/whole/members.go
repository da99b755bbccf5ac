package whole

import (
	"time"

	"github.com/quorlease/quorlease/bench/bound"
	"github.com/quorlease/quorlease/bench/grow"
	"github.com/quorlease/quorlease/bench/plot"
	"github.com/quorlease/quorlease/bench/report"
	"github.com/quorlease/quorlease/bench/sheet"
	"github.com/quorlease/quorlease/bench/stat"
)

// gapMost is how long nothing may be granted during a step, seconds.
const gapMost = 2.0

// grown is what became of members that came and went. A lease that was lost or doubled,
// two changes at once, and a debit too many end the run with an error instead.
type grown struct {
	Hasty          bool          `json:"hasty"`
	Cycles         int           `json:"cycles"`
	Steps          int           `json:"steps"`
	Kills          int           `json:"leaders_killed"`
	Leases         int           `json:"leases"`
	Debits         int64         `json:"debits"`
	Configurations int           `json:"configurations"`
	Gap            float64       `json:"longest_gap_s"`
	Killed         float64       `json:"longest_failover_s"`
	Bounds         []bound.Bound `json:"bounds"`
}

// grownOf judges what was found.
func grownOf(c *Config, r *grow.Result) *grown {
	g := &grown{
		Hasty: c.Hasty, Cycles: c.Cycles, Steps: r.Steps, Kills: r.Kills, Leases: r.Leases, Debits: r.Debits,
		Configurations: r.Configurations, Gap: r.LongestGap.Seconds(), Killed: r.LongestFailover.Seconds(),
	}
	for _, one := range []struct {
		slug, name string
		seconds    float64
	}{
		{"members-gap", "members come and go: longest time without a grant in a step", g.Gap},
		{"members-failover", "members come and go: the same where the leader was killed", g.Killed},
	} {
		b := bound.Bound{Bound: one.slug, Name: one.name, Unit: "s", Most: new(gapMost)}
		got := stat.SpreadOf([]float64{one.seconds})
		g.Bounds = append(g.Bounds, b.Judge(&got, "", true))
	}
	return g
}

// Section is the run as a part of a sheet.
func (g *grown) Section() sheet.Section {
	number := func(n int) string { return plot.Grouped(int64(n)) }
	seconds := func(s float64) string {
		return time.Duration(s * float64(time.Second)).Round(time.Millisecond).String()
	}
	return sheet.Section{
		Section: "members", Title: "Members come and go", Hasty: g.Hasty, Bounds: g.Bounds,
		Heading: []string{"from three voters to five and back under load, a leader killed in each cycle"},
		Tables: []sheet.Table{{
			Title: "what was done, and what came of it",
			Heads: []string{
				"cycles", "steps", "leaders killed", "leases", "configurations", "longest gap", "with a leader killed",
			},
			Rows: [][]string{{
				number(g.Cycles), number(g.Steps), number(g.Kills), number(g.Leases), number(g.Configurations),
				seconds(g.Gap), seconds(g.Killed),
			}},
		}},
		Checks: []report.Check{
			{Guarantee: "G1", By: "the logs of all nodes", OK: true, Text: plot.Grouped(g.Debits) + " debits"},
			{
				Guarantee: "G4", By: "asking again for every lease", OK: true,
				Text: number(g.Leases) + " acknowledged leases are all there, none twice",
			},
			{Guarantee: "G9", By: "the nodes' digests", OK: true, Text: "all nodes have one state"},
		},
	}
}
