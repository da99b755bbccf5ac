package retries

import (
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/tally"
)

const (
	// reportBytesMax keeps a report well inside a log entry.
	reportBytesMax = 32 << 10
	// sliceBytes is what a slice takes in a report beside the client's name.
	sliceBytes = 72
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
		fault := n.mu.faults.commonest(at, c.name, c.window)
		for i := range c.slots {
			s := &c.slots[i]
			if s.unreported() == (tally.Count{}) {
				continue
			}
			if size >= reportBytesMax {
				break
			}
			report.Slices = append(report.Slices, &logv1.ClientSlice{
				Client: c.name, Slice: s.slice, Total: s.own.Total, Retries: s.own.Retries,
				Throttled: s.own.Throttled, Denied: s.own.Denied, Early: s.own.Early,
				Error: fault.Text, Errors: fault.Times,
			})
			size += len(c.name) + len(fault.Text) + sliceBytes
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
				n.appliedLocked(c, &c.slots[i], tally.Count{
					Total: r.GetTotal(), Retries: r.GetRetries(), Throttled: r.GetThrottled(),
					Denied: r.GetDenied(), Early: r.GetEarly(),
				})
				break
			}
		}
		n.forgetLocked(c)
	}
}

// Reconcile compares everything kept with what the replica counts, after it was
// replaced by a snapshot that may hold reports whose entries were never applied
// here.
func (n *Counter) Reconcile(replica Replica) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.mu.clients {
		for i := range c.slots {
			s := &c.slots[i]
			n.appliedLocked(c, s, replica.Counted(n.process(), c.name, s.slice))
		}
		n.forgetLocked(c)
	}
}

// appliedLocked raises what is known to be applied, never beyond what was
// counted.
func (n *Counter) appliedLocked(c *client, s *slot, to tally.Count) {
	before := s.unreported()
	s.applied = s.applied.Max(to.Min(s.own))
	c.kept = c.kept.Minus(before.Minus(s.unreported()))
	n.unlistLocked(c)
}

// process is this node's, as the replica knows it.
func (n *Counter) process() tally.Process {
	return tally.Process{Node: n.config.Node, Boot: n.config.Boot}
}

// Kept is how many clients and slots are kept, for metrics.
func (n *Counter) Kept() (clients, slots int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.mu.clients), n.mu.room
}
