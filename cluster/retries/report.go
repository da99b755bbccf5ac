package retries

import (
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
)

const (
	// reportBytesMax keeps a report well inside a log entry.
	reportBytesMax = 32 << 10
	// sliceBytes is what a slice takes in a report beside the client's name.
	sliceBytes = 48
)

// Report returns the cumulative counts of the slices that the replica does not
// hold, at most 32 KiB of them, those that waited longest first. Nil: there
// are none. It may be lost, repeated or overtaken.
func (n *Counter) Report(at time.Duration) *logv1.ReportRetries {
	n.mu.Lock()
	defer n.mu.Unlock()
	report := &logv1.ReportRetries{Node: n.config.Node, Boot: n.config.Boot}
	size := 0
	for left := n.mu.unreported.Len(); left > 0 && size < reportBytesMax; left-- {
		c := n.mu.unreported.Front().Value.(*client)
		n.slideLocked(at, c)
		if c.listed == nil {
			n.forgetLocked(c)
			continue
		}
		for i := range c.slots {
			s := &c.slots[i]
			if s.unreported() == (counts{}) {
				continue
			}
			if size >= reportBytesMax {
				break
			}
			report.Slices = append(report.Slices, &logv1.ClientSlice{
				Client: c.name, Slice: s.slice, Total: s.own.total, Retries: s.own.retries,
			})
			size += len(c.name) + sliceBytes
		}
		c.reported, c.fresh = at, false
		n.mu.unreported.MoveToBack(c.listed)
	}
	if len(report.Slices) == 0 {
		return nil
	}
	return report
}

// Applied takes what the node's own replica has just applied: a report of any
// node. What it holds of this node's counts is no longer kept here (T31).
func (n *Counter) Applied(report *logv1.ReportRetries) {
	if report.GetNode() != n.config.Node || report.GetBoot() != n.config.Boot {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, r := range report.GetSlices() {
		c := n.mu.clients[r.GetClient()]
		if c == nil {
			continue
		}
		for i := range c.slots {
			if c.slots[i].slice == r.GetSlice() {
				n.appliedLocked(c, &c.slots[i], counts{r.GetTotal(), r.GetRetries()})
				break
			}
		}
		n.forgetLocked(c)
	}
}

// Reconcile compares everything kept with what the replica counts, after it was
// replaced by a snapshot that may hold reports whose entries were never applied
// here. counted is what the replica has applied of this node's reports.
func (n *Counter) Reconcile(counted func(client string, slice int64) (total, retries int64)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.mu.clients {
		for i := range c.slots {
			s := &c.slots[i]
			total, retries := counted(c.name, s.slice)
			n.appliedLocked(c, s, counts{total, retries})
		}
		n.forgetLocked(c)
	}
}

// appliedLocked raises what is known to be applied, never beyond what was
// counted.
func (n *Counter) appliedLocked(c *client, s *slot, to counts) {
	before := s.unreported()
	s.applied.total = max(s.applied.total, min(to.total, s.own.total))
	s.applied.retries = max(s.applied.retries, min(to.retries, s.own.retries))
	after := s.unreported()
	c.total -= before.total - after.total
	c.retries -= before.retries - after.retries
	n.unlistLocked(c)
}

// Kept is how many clients and slots are kept, for metrics.
func (n *Counter) Kept() (clients, slots int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.mu.clients), n.mu.room
}
