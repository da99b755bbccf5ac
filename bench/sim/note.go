package sim

import (
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/bench/sim/judge"
	"github.com/quorlease/quorlease/bench/sim/quorum"
	"github.com/quorlease/quorlease/bench/sim/trap"
	"github.com/quorlease/quorlease/fsm"
)

// note is what is known of an entry beside what the log has of it: who stamped it,
// and what it says. Its bytes say the same to every node, and no replica changes it:
// who applies it first decodes it for all, as the witness has it from a node.
type note struct {
	stamp *judge.Stamp
	entry *logv1.Entry
}

func (n *node) decoded(e *quorum.Entry) (*logv1.Entry, error) {
	about := e.Note.(*note)
	if about.entry != nil {
		return about.entry, nil
	}
	entry, err := fsm.DecodeEntry(e.Payload)
	if err != nil {
		return nil, err
	}
	// As cluster/entry does it (T4).
	if entry.GetTerm() != e.Term && n.world.trap != trap.OldStamp {
		entry.Stamp = 0
	}
	about.entry = entry
	return entry, nil
}
