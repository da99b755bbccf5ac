package disk

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
)

// Visitor is told what a stopped node has on disk.
type Visitor struct {
	// Snapshot gets the state that the entries go on from, where the log does not
	// begin with the first one. It is called at most once, before Entry.
	Snapshot func(state io.Reader) error
	// Entry gets every entry of operations, in order.
	Entry func(index, term uint64, data []byte) error
	// Members gets every configuration, in order among the entries, and before the first
	// of them those that the log still has beside the snapshot. Nil: nobody does.
	Members func(index, term uint64, members []Member) error
}

// Member is one member of a configuration.
type Member struct {
	RaftID, Address string
	Voter           bool
}

// Read tells visit what the node whose data directory dir is has stored, as far
// back as there is something. It changes nothing and fails where a process still
// owns the log. The last entries may be ones that never committed.
func Read(dir string, visit Visitor) error {
	path := filepath.Join(dir, logFile)
	found, err := checkLog(path)
	if err != nil {
		return err
	}
	from := found.first
	if found.first > 1 {
		// The oldest snapshot that the log goes on from: more can be told of.
		from, err = readSnapshot(filepath.Join(dir, snapshotsDir), found, visit.Snapshot)
		if err != nil {
			return err
		}
	}
	if from == 0 {
		return nil
	}
	begin := from
	if visit.Members != nil {
		begin = found.first
	}
	return guarded(path, func() error { return readEntries(path, begin, found.last, visit.since(from)) })
}

// readSnapshot returns the index of the entry that goes on from the snapshot.
func readSnapshot(path string, found extent, visit func(io.Reader) error) (uint64, error) {
	stored, err := survey(path)
	if err != nil {
		return 0, err
	}
	for i := len(stored) - 1; i >= 0; i-- {
		dir := filepath.Join(path, stored[i].name)
		if stored[i].index+1 < found.first || readable(dir) != nil {
			continue
		}
		state, err := os.Open(filepath.Join(dir, stateFile))
		if err != nil {
			return 0, fmt.Errorf("read snapshot: %w", err)
		}
		if err := errors.Join(visit(state), state.Close()); err != nil {
			return 0, fmt.Errorf("read snapshot %s: %w", stored[i].name, err)
		}
		return stored[i].index + 1, nil
	}
	return 0, fmt.Errorf("%w: the log begins at entry %d, and no snapshot in %s reaches it",
		ErrCorrupt, found.first, path)
}

func readEntries(path string, first, last uint64, visit Visitor) (err error) {
	bolt, err := raftboltdb.New(raftboltdb.Options{Path: path, BoltOptions: readOnly()})
	if err != nil {
		return logError(path, err)
	}
	defer func() { err = errors.Join(err, bolt.Close()) }()
	for index := first; index <= last; index++ {
		var log raft.Log
		if err := bolt.GetLog(index, &log); err != nil {
			return fmt.Errorf("read log %s: entry %d: %w", path, index, err)
		}
		if err := visit.log(&log); err != nil {
			return fmt.Errorf("read log %s: entry %d: %w", path, index, err)
		}
	}
	return nil
}

// since is the visitor without the entries of operations before from.
func (v Visitor) since(from uint64) Visitor {
	all := v.Entry
	v.Entry = func(index, term uint64, data []byte) error {
		if index < from {
			return nil
		}
		return all(index, term, data)
	}
	return v
}

// log tells of one entry.
func (v *Visitor) log(log *raft.Log) error {
	switch {
	case log.Type == raft.LogCommand:
		return v.Entry(log.Index, log.Term, log.Data)
	case log.Type == raft.LogConfiguration && v.Members != nil:
		var members []Member
		for _, s := range raft.DecodeConfiguration(log.Data).Servers {
			members = append(members, Member{string(s.ID), string(s.Address), s.Suffrage == raft.Voter})
		}
		return v.Members(log.Index, log.Term, members)
	}
	return nil
}
