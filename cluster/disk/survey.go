package disk

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc64"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/raft"
)

// How Raft names what it stores.
const (
	metaFile  = "meta.json"
	stateFile = "state.bin"
	tmpSuffix = ".tmp"
)

// kept is one snapshot on disk. Its place in the order comes from the name of
// its directory: what is in there may be damaged.
type kept struct {
	name              string
	term, index, time uint64
	// untrusted is what is wrong with what Raft notes beside the state: Raft must
	// not see the snapshot.
	untrusted error
}

// survey lists the complete snapshots in the directory at path, the newest
// first, and changes nothing. Without a directory there are none.
func survey(path string) (found []kept, err error) {
	entries, err := os.ReadDir(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("list snapshots: %w", err)
	}
	for _, entry := range entries {
		k := kept{name: entry.Name()}
		// A name that reads the same when it is put together again: nothing is
		// left over.
		n, _ := fmt.Sscanf(k.name, "%d-%d-%d", &k.term, &k.index, &k.time)
		if n != 3 || k.name != fmt.Sprintf("%d-%d-%d", k.term, k.index, k.time) || !entry.IsDir() {
			continue
		}
		_, k.untrusted = readMeta(filepath.Join(path, k.name))
		found = append(found, k)
	}
	slices.SortFunc(found, func(a, b kept) int {
		return cmp.Or(cmp.Compare(b.term, a.term), cmp.Compare(b.index, a.index), cmp.Compare(b.time, a.time))
	})
	return found, nil
}

// storedMeta is what Raft writes: with the checksum of the state.
type storedMeta struct {
	raft.SnapshotMeta
	CRC []byte
}

// readMeta reads and checks what Raft notes beside the state in dir.
func readMeta(dir string) (*storedMeta, error) {
	b, err := os.ReadFile(filepath.Join(dir, metaFile))
	if err != nil {
		return nil, fmt.Errorf("%s %w: %w", metaFile, ErrCorrupt, err)
	}
	meta := &storedMeta{}
	// Like Raft: whatever follows the object is not looked at.
	if err := json.NewDecoder(bytes.NewReader(b)).Decode(meta); err != nil {
		return nil, fmt.Errorf("%s %w: %w", metaFile, ErrCorrupt, err)
	}
	return meta, checkSeal(dir, &meta.SnapshotMeta)
}

// readable reads the snapshot in dir from end to end.
func readable(dir string) (err error) {
	meta, err := readMeta(dir)
	if err != nil {
		return err
	}
	f, err := os.Open(filepath.Join(dir, stateFile))
	if err != nil {
		return fmt.Errorf("%s %w: %w", stateFile, ErrCorrupt, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	sum := crc64.New(crc64.MakeTable(crc64.ECMA))
	if _, err := io.Copy(sum, f); err != nil {
		return fmt.Errorf("%s %w: %w", stateFile, ErrCorrupt, err)
	}
	if got := sum.Sum(nil); !bytes.Equal(got, meta.CRC) {
		return fmt.Errorf("%s %w: checksum %x, stored was %x", stateFile, ErrCorrupt, got, meta.CRC)
	}
	return nil
}

// checkReach refuses a log that does not go on where the newest readable
// snapshot ends, or ends before one that can't be read: entries would be missing
// for good. A gap that a snapshot covers is no damage: Raft leaves old entries
// behind when a leader sends it one, and goes on behind it, wherever the log
// ended. Where there are snapshots, or there was state before, and no term, the
// log was lost or replaced, and with it entries that this node has acknowledged
// and its votes: it must not vote again (R37).
func checkReach(path string, snapshots []kept, found extent, formed bool) error {
	log := filepath.Join(filepath.Dir(path), logFile)
	switch {
	case len(snapshots) > 0 && !found.term:
		return fmt.Errorf("%w: there are snapshots in %s, but the log %s is gone or empty", ErrCorrupt, path, log)
	case formed && !found.term:
		return fmt.Errorf("%w: the node belongs to a cluster, but its log %s is gone or empty", ErrCorrupt, log)
	}
	var covered, lost uint64
	var damage []string
	for _, k := range snapshots {
		err := readable(filepath.Join(path, k.name))
		if err == nil {
			covered = k.index
			break
		}
		damage = append(damage, fmt.Sprintf("%s: %v", k.name, err))
		lost = max(lost, k.index)
	}
	switch first := found.first; {
	case len(damage) > 0 && len(damage) == len(snapshots):
		return fmt.Errorf("%w: no snapshot in %s can be read: %s", ErrCorrupt, path, strings.Join(damage, "; "))
	case found.last < lost && covered < lost:
		return fmt.Errorf("%w: the log ends at entry %d, before a snapshot in %s that can't be read: %s",
			ErrCorrupt, found.last, path, strings.Join(damage, "; "))
	case first > covered+1 && found.before != 0:
		return fmt.Errorf("%w: in the log entry %d follows entry %d, the newest readable snapshot ends at %d",
			ErrCorrupt, first, found.before, covered)
	case first > covered+1:
		return fmt.Errorf("%w: the log begins at entry %d, the newest readable snapshot ends at %d",
			ErrCorrupt, first, covered)
	}
	return nil
}
