package circuit

import (
	"container/list"
	"time"
)

// Key names a circuit.
type Key struct {
	// Tenant is whose it is.
	Tenant     string
	Deployment string
	// All: it is the deployment's, for all tenants; Tenant is empty.
	All bool
}

// circuit is what is known of a key. It is pure: its Board has the lock.
type circuit struct {
	key Key
	// turn changes whenever it opens or closes: what was sent before says nothing about
	// after.
	turn uint64
	// open: it is not closed. Before until nothing passes; after it, one probe.
	open  bool
	until time.Duration
	// probe is the one that is on its way, 0 for none, and lost when it counts as lost.
	probe uint64
	lost  time.Duration
	// began is when the newer half of the window began.
	began       time.Duration
	now, before tally
	used        time.Duration
	byAge       *list.Element
}

type tally struct{ sent, failed int }

// soon is how long requests are told to wait that come while a probe is on its way, and
// how long after a probe that ended without telling anything the next one is.
const soon = time.Second

// left is how long it lets nothing pass, 0 where a request may be forwarded. probe: as
// the one that finds out.
func (c *circuit) left(now time.Duration) (left time.Duration, probe bool) {
	switch {
	case !c.open:
		return 0, false
	case now < c.until:
		return c.until - now, false
	case c.probe != 0 && now < c.lost:
		return min(soon, c.lost-now), false
	default:
		return 0, true
	}
}

// openAt opens it until then.
func (c *circuit) openAt(until time.Duration) {
	c.open = true
	c.until = until
	c.now, c.before = tally{}, tally{}
	c.turn++
}

// wait keeps it open until then, because an answer to what was sent before said so. That
// counts more than what a probe finds that is on its way.
func (c *circuit) wait(until time.Duration) {
	if until > c.until {
		c.openAt(until)
	}
}

// close closes it.
func (c *circuit) close(now time.Duration) {
	c.open = false
	c.began, c.now, c.before = now, tally{}, tally{}
	c.turn++
}

// count notes what became of a request.
func (c *circuit) count(now, window time.Duration, failed bool) {
	switch age := now - c.began; {
	case age >= window:
		c.began, c.now, c.before = now, tally{}, tally{}
	case age >= window/2:
		c.began, c.now, c.before = c.began+window/2, tally{}, c.now
	}
	c.now.sent++
	if failed {
		c.now.failed++
	}
}

// exceeds says whether the failures in the window are enough to open it.
func (c *circuit) exceeds(least, fractionBP int) bool {
	sent, failed := c.now.sent+c.before.sent, c.now.failed+c.before.failed
	return fractionBP >= 0 && sent >= least && failed*10_000 >= fractionBP*sent
}

// idle says whether it may be forgotten.
func (c *circuit) idle(now, most time.Duration) bool {
	since := c.used
	if c.open {
		since = max(since, c.until)
	}
	return now-since >= most
}
