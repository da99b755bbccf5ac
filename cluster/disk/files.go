package disk

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"
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
// what a power cut or a faulty disk left inconsistent (R17); then nothing was
// changed. formed says that there was state in dir before. Close releases them.
func OpenStores(dir string, formed bool, logger hclog.Logger) (*Stores, error) {
	path, snapshotsPath := filepath.Join(dir, logFile), filepath.Join(dir, snapshotsDir)
	found, err := checkLog(path)
	if err != nil {
		return nil, err
	}
	stored, err := survey(snapshotsPath)
	if err != nil {
		return nil, err
	}
	if err := checkReach(snapshotsPath, stored, found, formed); err != nil {
		return nil, err
	}
	snapshots, err := openSnapshots(dir, stored, logger)
	if err != nil {
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
