package retries

import (
	"slices"
	"time"

	"github.com/quorlease/quorlease/fsm/tally"
	"github.com/quorlease/quorlease/fsm/window"
)

// openLocked finds or makes the slot of a hold. A new one goes on where the
// replica is.
func (n *Counter) openLocked(c *client, h Hold, replica Replica) *slot {
	slice := window.At(int64(h.now), window.Length(c.window))
	// The slot is nearly always the last one.
	for i := len(c.slots) - 1; i >= 0; i-- {
		if c.slots[i].slice == slice {
			return &c.slots[i]
		}
	}
	s := slot{slice: slice, began: h.at}
	if replica != nil {
		s.applied = replica.Counted(n.process(), c.name, slice)
		s.own = s.applied
	}
	i := len(c.slots)
	for i > 0 && c.slots[i-1].began > h.at {
		i--
	}
	c.slots = slices.Insert(c.slots, i, s)
	n.mu.room++
	return &c.slots[i]
}

// slideLocked drops the slots that have left the window by this node's own
// clock. The state machine drops them too, so nothing is lost that counts, and
// a node that is cut off does not refuse for ever (T32).
func (n *Counter) slideLocked(at time.Duration, c *client) {
	gone := 0
	for gone < len(c.slots) && at-c.slots[gone].began >= c.window {
		n.dropLocked(c, &c.slots[gone])
		gone++
	}
	if gone > 0 {
		c.slots = slices.Delete(c.slots, 0, gone)
	}
}

// dropLocked takes a slot out of the sums; the caller takes it out of slots.
func (n *Counter) dropLocked(c *client, s *slot) {
	c.kept = c.kept.Minus(s.unreported())
	n.mu.room--
	n.unlistLocked(c)
}

func (n *Counter) unlistLocked(c *client) {
	if c.listed != nil && c.kept == (tally.Count{}) {
		n.mu.unreported.Remove(c.listed)
		c.listed = nil
	}
}

// forgetLocked frees what the replica holds, and the client when nothing is
// left. A slot that a hold will count into stays.
func (n *Counter) forgetLocked(c *client) {
	if c.holds > 0 || c.kept != (tally.Count{}) {
		return
	}
	n.mu.room -= len(c.slots)
	c.slots = nil
	delete(n.mu.clients, c.name)
}

// rewindowLocked numbers the slices anew when the length of the client's window
// has changed: what is not applied moves to the present, on top of what the replica has
// there by now of this process. It may count for a little too long, never too short.
func (n *Counter) rewindowLocked(c *client, h Hold, r Request) {
	left := c.kept
	n.mu.room -= len(c.slots)
	c.slots, c.window = nil, r.Rule.Window
	if left == (tally.Count{}) {
		return
	}
	s := n.openLocked(c, h, r.Replica)
	s.own = s.own.Plus(left)
}
