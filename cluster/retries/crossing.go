package retries

import "time"

// crossesLocked says that what the replica does not hold of a client may take it
// over the line above which it is warned of, or back below: this node's part, if
// every node has as much. Warnings are of a time to the second, so that a node
// must not keep such a count for the second until its next report.
func (n *Counter) crossesLocked(c *client, r Request) bool {
	if r.WarnFraction == 0 {
		return false
	}
	nodes := int64(max(1, n.mu.nodes))
	total := r.Total + nodes*(c.kept.Total+c.holds)
	retries := r.Retries + nodes*(c.kept.Retries+c.holdRetries)
	return r.Rule.Above(total, retries, r.WarnFraction) != r.Rule.Above(r.Total, r.Retries, r.WarnFraction)
}

// crossingLocked asks for a report, unless there were many for this reason just
// now: clients that hover at their lines must not fill the log.
func (n *Counter) crossingLocked(at time.Duration) {
	if n.mu.crossings-at > (crossingsMost-1)*crossingPause {
		return
	}
	n.mu.crossings = max(n.mu.crossings, at) + crossingPause
	select {
	case n.due <- struct{}{}:
	default:
	}
}

// crossing asks for a report where what is kept of a client may take it over its
// line, now that the replica has counts of other nodes. It wants the lock that
// Decide wants.
func (n *Counter) crossing(at time.Duration, r Request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if c := n.mu.clients[r.Client]; c != nil && c.listed != nil && n.crossesLocked(c, r) {
		n.crossingLocked(at)
	}
}

// keeps says whether anything is counted of a client that the replica does not
// hold.
func (n *Counter) keeps(client string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := n.mu.clients[client]
	return c != nil && c.listed != nil
}
