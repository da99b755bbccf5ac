package ledger

import (
	"slices"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/check"
	"github.com/quorlease/quorlease/fsm/frames"
	"github.com/quorlease/quorlease/fsm/record"
)

// Bounds of the processes that are remembered, over all nodes and of one (G10). That
// which was given some longest ago is forgotten: it is dead, and nobody spends what a
// late ask of it brings.
const (
	maxAskers = 256
	maxBoots  = 4
)

// Highest is the highest sequence that a process was given any under, 0 for none.
func (l *Ledger) Highest(node string, boot uint64) uint64 {
	if i, found := l.asker(node, boot); found {
		return l.askers[i].Highest
	}
	return 0
}

// Given notes that a process was given escrow at now, under a sequence higher than all
// before. It returns the node's name as it is kept, so that records share it.
func (l *Ledger) Given(id record.EscrowID, now bucket.Instant) (node string) {
	one := record.Asker{Node: id.Node, Boot: id.Boot, Highest: id.Sequence, At: now}
	i, found := l.asker(id.Node, id.Boot)
	if !found {
		l.makeRoom(id.Node)
		i, _ = l.asker(id.Node, id.Boot)
		l.insert(i, one)
		return one.Node
	}
	one.Node = l.askers[i].Node
	l.sum += one.Sum() - l.askers[i].Sum()
	// A snapshot may hold the list.
	l.askers = slices.Clone(l.askers)
	l.askers[i] = one
	return one.Node
}

func (l *Ledger) insert(at int, one record.Asker) {
	l.sum += one.Sum()
	l.askers = slices.Insert(slices.Clone(l.askers), at, one)
}

// LoadAsker takes a process out of a snapshot. The error is a frames.ErrCorrupt.
func (l *Ledger) LoadAsker(saved *logv1.SnapshotAsker, now bucket.Instant) error {
	one, err := record.LoadAsker(saved, now)
	if err != nil {
		return err
	}
	i, found := l.asker(one.Node, one.Boot)
	if found || len(l.askers) >= maxAskers {
		return frames.Corrupt("asker %q: is there twice, or more than %d", check.Clip(one.Node), maxAskers)
	}
	l.insert(i, one)
	return nil
}

// makeRoom forgets a process where one more of a node would be too many.
func (l *Ledger) makeRoom(node string) {
	boots, oldest, own := 0, -1, -1
	for i := range l.askers {
		a := &l.askers[i]
		if oldest < 0 || a.At < l.askers[oldest].At {
			oldest = i
		}
		if a.Node != node {
			continue
		}
		boots++
		if own < 0 || a.At < l.askers[own].At {
			own = i
		}
	}
	if boots >= maxBoots {
		oldest = own
	} else if len(l.askers) < maxAskers {
		return
	}
	l.sum -= l.askers[oldest].Sum()
	l.askers = slices.Delete(slices.Clone(l.askers), oldest, oldest+1)
}

func (l *Ledger) asker(node string, boot uint64) (at int, found bool) {
	of := record.Asker{Node: node, Boot: boot}
	return slices.BinarySearchFunc(l.askers, of, func(a, of record.Asker) int { return a.Compare(&of) })
}
