package servertest

import logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"

// Tick applies an entry without operations, as a leader does of whom nobody asks
// anything.
func (n *Node) Tick() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.index++
	n.machine.Apply(n.index, &logv1.Entry{Stamp: n.now, Wall: wall.UnixNano() + n.now})
}
