package disk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"
)

// Raft's own checksum covers a snapshot's state, and nothing covers what it
// notes beside it: a flipped bit in the configuration there would make a node
// take itself for removed, or another's address for a peer's. So a file with a
// checksum of that goes into the snapshot's directory before Raft moves it into
// place: a crash leaves both or neither, and both are deleted together.

const sealFile = "meta.crc"

// Create begins a snapshot, this node's own or one that a leader sends. Beside
// one whose notes were damaged meanwhile it refuses: completing a new one makes
// Raft delete old ones by what their notes say.
//
//nolint:revive // the arguments are those of raft.SnapshotStore
func (s *Snapshots) Create(version raft.SnapshotVersion, index, term uint64, configuration raft.Configuration,
	configurationIndex uint64, trans raft.Transport,
) (raft.SnapshotSink, error) {
	stored, err := survey(s.path)
	if err != nil {
		return nil, err
	}
	for _, k := range stored {
		if k.untrusted != nil {
			return nil, fmt.Errorf("create snapshot beside %s: %w", k.name, k.untrusted)
		}
	}
	inner, err := s.files.Create(version, index, term, configuration, configurationIndex, trans)
	if err != nil {
		return nil, err
	}
	return &sink{SnapshotSink: inner, dir: filepath.Join(s.path, inner.ID()+tmpSuffix), meta: raft.SnapshotMeta{
		Version: version, ID: inner.ID(), Index: index, Term: term,
		Configuration: configuration.Clone(), ConfigurationIndex: configurationIndex,
	}}, nil
}

// sink seals a snapshot when it is complete. Like Raft's it has one caller.
type sink struct {
	raft.SnapshotSink
	// dir is where the snapshot is while it is being written.
	dir    string
	meta   raft.SnapshotMeta
	closed bool
}

// Write implements io.Writer.
func (s *sink) Write(b []byte) (int, error) {
	n, err := s.SnapshotSink.Write(b)
	s.meta.Size += int64(n)
	return n, err
}

// Close completes the snapshot. Raft calls it again after Persist did.
func (s *sink) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	if err := writeSeal(s.dir, &s.meta); err != nil {
		return errors.Join(fmt.Errorf("seal snapshot: %w", err), s.SnapshotSink.Cancel())
	}
	return s.SnapshotSink.Close()
}

// Cancel gives the snapshot up; after Close it does nothing.
func (s *sink) Cancel() error {
	s.closed = true
	return s.SnapshotSink.Cancel()
}

func writeSeal(dir string, meta *raft.SnapshotMeta) error {
	f, err := os.OpenFile(filepath.Join(dir, sealFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%08x\n", metaSum(meta))
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// checkSeal compares what was read from dir with the checksum there.
func checkSeal(dir string, meta *raft.SnapshotMeta) error {
	stored, err := os.ReadFile(filepath.Join(dir, sealFile))
	if err != nil {
		return fmt.Errorf("%s %w: %w", metaFile, ErrCorrupt, err)
	}
	if got := fmt.Sprintf("%08x\n", metaSum(meta)); got != string(stored) {
		return fmt.Errorf("%s %w: checksum %.8s, stored was %.8q", metaFile, ErrCorrupt, got, stored)
	}
	if name := filepath.Base(dir); meta.ID != name {
		return fmt.Errorf("%s %w: it says that it is snapshot %.80q", metaFile, ErrCorrupt, meta.ID)
	}
	return nil
}

// metaSum leaves Peers out: Raft reads them from snapshots of version 0 only,
// and there are none. Every length is part of it, so that no two meanings look
// alike.
func metaSum(meta *raft.SnapshotMeta) uint32 {
	b := binary.BigEndian.AppendUint64(nil, uint64(meta.Version))
	b = appendText(b, meta.ID)
	for _, number := range []uint64{
		meta.Index, meta.Term, meta.ConfigurationIndex, uint64(meta.Size), uint64(len(meta.Configuration.Servers)),
	} {
		b = binary.BigEndian.AppendUint64(b, number)
	}
	for _, server := range meta.Configuration.Servers {
		b = binary.BigEndian.AppendUint64(b, uint64(server.Suffrage))
		b = appendText(b, string(server.ID))
		b = appendText(b, string(server.Address))
	}
	return crc32.Checksum(b, castagnoli)
}

func appendText(b []byte, text string) []byte {
	return append(binary.BigEndian.AppendUint64(b, uint64(len(text))), text...)
}
