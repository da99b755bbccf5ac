package disk

import (
	"errors"
	"fmt"
	"io"

	"github.com/hashicorp/raft"
)

// Frozen is a state as it was.
type Frozen interface {
	io.WriterTo
	// Release lets go of it.
	Release()
}

// Persisting is how raft has a frozen state written.
func (s *Snapshots) Persisting(state Frozen) raft.FSMSnapshot { return &persisting{state, s} }

type persisting struct {
	Frozen
	store *Snapshots
}

// Persist implements raft.FSMSnapshot. It reads the snapshot back as soon as it
// is complete: the log behind it is about to be deleted (R23).
func (p *persisting) Persist(sink raft.SnapshotSink) error {
	if err := p.store.Tighten(sink.ID()); err != nil {
		return errors.Join(err, sink.Cancel())
	}
	if _, err := p.WriteTo(sink); err != nil {
		return errors.Join(fmt.Errorf("write snapshot: %w", err), sink.Cancel())
	}
	if err := sink.Close(); err != nil {
		return fmt.Errorf("close snapshot: %w", err)
	}
	return p.store.Verify(sink.ID())
}
