package sim

import (
	"fmt"
	"slices"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/bench/sim/judge"
)

// cutter applies the log too, and looks at a bucket more often: it takes a token
// and gives it back at once. What a bucket holds must not depend on how often it
// was looked at (T47).
type cutter struct {
	world   *World
	replica *replica
	serial  int
}

func (c *cutter) see(entry *judge.Committed) {
	c.replica.apply(entry.Index, entry.Entry)
	if c.world.trap != None || !c.world.stage.Chance(4) {
		return
	}
	c.serial++
	id := fmt.Appendf(nil, "%-16s", fmt.Sprint("cut", c.serial))
	results := c.replica.apply(entry.Index, &logv1.Entry{Operations: []*logv1.Operation{
		acquire(&logv1.Acquire{
			LeaseId: id, Class: "live", Track: true, Charges: charges(mixedLimit, "", "requests", 1),
		}),
		{Kind: &logv1.Operation_Release{Release: &logv1.Release{LeaseId: id}}},
	}})
	if c.world.witness.replica.Limit(mixedLimit) == nil || results[0].GetAcquire() == nil {
		return
	}
	c.compare()
}

func (c *cutter) compare() {
	mine, err := c.replica.Inspect(0, mixedLimit, "")
	theirs, otherwise := c.world.witness.replica.Inspect(0, mixedLimit, "")
	if err != nil || otherwise != nil {
		c.world.judge.Complain("model", "%v, %v", err, otherwise)
		return
	}
	a, b := mine.Buckets[0], theirs.Buckets[0]
	if a.Level != b.Level || a.Debt != b.Debt || !slices.Equal(a.Classes, b.Classes) {
		c.world.judge.Complain("time", "looked at more often a bucket is %+v, else %+v", a, b)
	}
}
