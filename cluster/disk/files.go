package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// LogCacheEntries is how many entries followers that lag a little are served
// from without reading the disk (R30).
const LogCacheEntries = 2048

const (
	logFile      = "raft.db"
	snapshotsDir = "snapshots"
	// snapshotsKept is two: where the newest turns out to be unreadable, the one
	// before it and the log make up for it (R23).
	snapshotsKept = 2
	// logLockWait is how long to wait for another process to let go of the log
	// (R16). A restart by a supervisor may overlap by a moment.
	logLockWait = time.Second
)

// ErrCorrupt: what is stored contradicts itself. Nothing was changed.
var ErrCorrupt = errors.New("corrupt")

// Stores is what Raft keeps on disk.
type Stores struct {
	// Log holds the entries, the term and the vote.
	Log       *raftboltdb.BoltStore
	Snapshots *Snapshots
}

// OpenStores opens the log and the snapshots in dir, and refuses with ErrCorrupt
// what a power cut or a faulty disk left inconsistent (R17). Close releases
// them.
func OpenStores(dir string, logger hclog.Logger) (*Stores, error) {
	path := filepath.Join(dir, logFile)
	found, err := checkLog(path)
	if err != nil {
		return nil, err
	}
	snapshots, err := openSnapshots(dir, logger)
	if err != nil {
		return nil, err
	}
	if err := snapshots.checkReach(found); err != nil {
		return nil, err
	}
	bolt, err := raftboltdb.New(raftboltdb.Options{Path: path, BoltOptions: boltOptions()})
	if err != nil {
		return nil, logError(path, err)
	}
	return &Stores{Log: bolt, Snapshots: snapshots}, nil
}

// Close releases the log.
func (s *Stores) Close() error { return s.Log.Close() }

// boltOptions keep the list of free pages out of the file: written with every
// commit it makes a store that was once large slow for ever (R15). Syncing is
// never switched off.
func boltOptions() *bbolt.Options {
	return &bbolt.Options{
		Timeout:        logLockWait,
		NoFreelistSync: true,
		FreelistType:   bbolt.FreelistMapType,
	}
}

func logError(path string, err error) error {
	if errors.Is(err, berrors.ErrTimeout) {
		return fmt.Errorf("open log store %s: another process owns this data directory", path)
	}
	return fmt.Errorf("open log store %s: %w: %w", path, ErrCorrupt, err)
}

// Snapshots is Raft's file store in a directory that is nobody else's,
// without what crashes left behind.
type Snapshots struct {
	*raft.FileSnapshotStore
	path   string
	logger hclog.Logger
}

func openSnapshots(dir string, logger hclog.Logger) (*Snapshots, error) {
	path := filepath.Join(dir, snapshotsDir)
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("create snapshot directory: %w", err)
	}
	left, err := filepath.Glob(filepath.Join(path, "*.tmp"))
	if err != nil {
		return nil, fmt.Errorf("list snapshot directory: %w", err)
	}
	for _, l := range left {
		if err := os.RemoveAll(l); err != nil {
			return nil, fmt.Errorf("remove unfinished snapshot: %w", err)
		}
	}
	store, err := raft.NewFileSnapshotStoreWithLogger(dir, snapshotsKept, logger)
	if err != nil {
		return nil, fmt.Errorf("open snapshot store: %w", err)
	}
	return &Snapshots{FileSnapshotStore: store, path: path, logger: logger}, nil
}

// checkReach refuses a log that does not go on where the newest readable
// snapshot ends: entries would be missing for good. A gap that a snapshot covers is
// no damage: Raft leaves old entries behind when a leader sends it one. Where there are snapshots and
// no term, the log was lost or replaced, and with it entries that this node has
// acknowledged and its votes: it must not vote again (R37).
func (s *Snapshots) checkReach(found extent) error {
	metas, err := s.List()
	if err != nil {
		return fmt.Errorf("list snapshots: %w", err)
	}
	var covered uint64
	readable := len(metas) == 0
	for _, meta := range metas {
		if err := s.Verify(meta.ID); err != nil {
			s.logger.Error("snapshot unreadable", "index", meta.Index, "err", err)
			continue
		}
		covered, readable = meta.Index, true
		break
	}
	switch first, last := found.first, found.last; {
	case len(metas) > 0 && !found.term:
		return fmt.Errorf("%w: there are snapshots in %s, but the log %s is gone or empty", ErrCorrupt, s.path, logFile)
	case !readable:
		return fmt.Errorf("%w: no snapshot in %s can be read", ErrCorrupt, s.path)
	case first > covered+1 && found.before != 0:
		return fmt.Errorf("%w: in the log entry %d follows entry %d, the newest readable snapshot ends at %d",
			ErrCorrupt, first, found.before, covered)
	case first > covered+1:
		return fmt.Errorf("%w: the log begins at entry %d, the newest readable snapshot ends at %d",
			ErrCorrupt, first, covered)
	case last != 0 && last < covered:
		// The log ends before the snapshot: it was sent by a leader, and Raft goes
		// on behind it.
		return nil
	}
	return nil
}

// Tighten takes the directory and files of a snapshot that is being written from
// everybody else.
func (s *Snapshots) Tighten(id string) error {
	dir := filepath.Join(s.path, id+".tmp")
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
