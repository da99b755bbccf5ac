package disk

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// Snapshots is Raft's file store in a directory that is nobody else's, without
// what crashes left behind, and with a checksum on what Raft notes of each.
type Snapshots struct {
	files  *raft.FileSnapshotStore
	path   string
	logger hclog.Logger
}

var _ raft.SnapshotStore = (*Snapshots)(nil)

// openSnapshots removes those of stored whose notes Raft must not see: it would
// decide by them which is the newest and which to delete. The others and the log
// make up for them; that has been checked.
func openSnapshots(dir string, stored []kept, logger hclog.Logger) (*Snapshots, error) {
	path := filepath.Join(dir, snapshotsDir)
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("create snapshot directory: %w", err)
	}
	left, err := filepath.Glob(filepath.Join(path, "*"+tmpSuffix))
	if err != nil {
		return nil, fmt.Errorf("list snapshot directory: %w", err)
	}
	for _, l := range left {
		if err := os.RemoveAll(l); err != nil {
			return nil, fmt.Errorf("remove unfinished snapshot: %w", err)
		}
	}
	for _, k := range stored {
		if k.untrusted == nil {
			continue
		}
		logger.Error("unreadable snapshot removed", "snapshot", k.name, "err", k.untrusted)
		if err := os.RemoveAll(filepath.Join(path, k.name)); err != nil {
			return nil, fmt.Errorf("remove unreadable snapshot: %w", err)
		}
	}
	store, err := raft.NewFileSnapshotStoreWithLogger(dir, snapshotsKept, logger)
	if err != nil {
		return nil, fmt.Errorf("open snapshot store: %w", err)
	}
	return &Snapshots{files: store, path: path, logger: logger}, nil
}

// List returns the snapshots whose notes can be trusted, the newest first.
func (s *Snapshots) List() ([]*raft.SnapshotMeta, error) {
	metas, err := s.files.List()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(metas, func(meta *raft.SnapshotMeta) bool {
		err := checkSeal(filepath.Join(s.path, meta.ID), meta)
		if err != nil {
			s.logger.Error("snapshot unreadable", "snapshot", meta.ID, "err", err)
		}
		return err != nil
	}), nil
}

// Open returns a snapshot that has been read once against its checksums.
func (s *Snapshots) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	meta, source, err := s.files.Open(id)
	if err != nil {
		return nil, nil, err
	}
	if err := checkSeal(filepath.Join(s.path, id), meta); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("open snapshot %s: %w", id, err), source.Close())
	}
	return meta, source, nil
}

// Tighten takes the directory and files of a snapshot that is being written from
// everybody else.
func (s *Snapshots) Tighten(id string) error {
	dir := filepath.Join(s.path, id+tmpSuffix)
	if err := os.Chmod(dir, 0o700); err != nil {
		return fmt.Errorf("restrict snapshot: %w", err)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("restrict snapshot: %w", err)
	}
	for _, f := range files {
		if err := os.Chmod(filepath.Join(dir, f.Name()), 0o600); err != nil {
			return fmt.Errorf("restrict snapshot: %w", err)
		}
	}
	return nil
}

// Verify reads a snapshot from end to end against its checksum.
func (s *Snapshots) Verify(id string) error {
	_, source, err := s.Open(id)
	if err != nil {
		return fmt.Errorf("read snapshot %s: %w", id, err)
	}
	return source.Close()
}
