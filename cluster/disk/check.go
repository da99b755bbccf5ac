package disk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"
)

// stableKeys are those that Raft uses.
var stableKeys = []string{"CurrentTerm", "LastVoteTerm", "LastVoteCand"}

// How raft-boltdb names its two buckets, which it makes in one transaction.
const (
	logsBucket   = "logs"
	valuesBucket = "conf"
)

// checkLog reads the log once before Raft does, and changes nothing: what can't
// be trusted must not be applied, sent or voted by, and Raft would panic over a
// gap later, again and again (R17).
func checkLog(path string) (found extent, err error) {
	st, err := os.Stat(path)
	// An empty file is one that was about to be made.
	if errors.Is(err, os.ErrNotExist) || err == nil && st.Size() == 0 {
		return extent{}, nil
	}
	if err := checkPages(path); err != nil {
		return extent{}, err
	}
	err = guarded(path, func() error {
		found, err = walk(path)
		if err != nil || !found.made {
			return err
		}
		return checkContent(path, found.first, found.last)
	})
	return found, err
}

// extent is what of a log there is.
type extent struct {
	// first and last are the indexes of its end without a gap, 0 where the log is
	// empty.
	first, last uint64
	// before is the entry before the gap that first follows, 0 without a gap.
	before uint64
	// term says that a term is noted, as it is before anything else.
	term bool
	// made is false where the process that made the file ended before there was
	// anything in it.
	made bool
}

// guarded runs do over the log at path. What bbolt panics over in spite of all
// checks becomes an error.
func guarded(path string, do func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("log store %s %w: %v", path, ErrCorrupt, p)
		}
	}()
	return do()
}

func readOnly() *bbolt.Options {
	options := boltOptions()
	options.ReadOnly = true
	return options
}

// walk looks at the indexes from end to end.
func walk(path string) (found extent, err error) {
	db, err := bbolt.Open(path, 0o600, readOnly())
	if err != nil {
		return extent{}, logError(path, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	err = db.View(func(tx *bbolt.Tx) error {
		if err := checkNames(tx); err != nil {
			return fmt.Errorf("log store %s %w: %w", path, ErrCorrupt, err)
		}
		logs, values := tx.Bucket([]byte(logsBucket)), tx.Bucket([]byte(valuesBucket))
		if logs == nil {
			return nil
		}
		found.made = true
		found.term = values.Get([]byte("CurrentTerm")) != nil
		cursor := logs.Cursor()
		for key, _ := cursor.First(); key != nil; key, _ = cursor.Next() {
			if len(key) != 8 {
				return fmt.Errorf("log store %s %w: a key of %d bytes", path, ErrCorrupt, len(key))
			}
			index := binary.BigEndian.Uint64(key)
			switch {
			case index == 0:
				return fmt.Errorf("log store %s %w: an entry 0", path, ErrCorrupt)
			case found.first == 0:
				found.first = index
			case index != found.last+1:
				found.before, found.first = found.last, index
			}
			found.last = index
		}
		return nil
	})
	return found, err
}

// checkNames knows every name in the file: a value whose key was changed would be
// missed as if it had never been stored, and a vote with it.
func checkNames(tx *bbolt.Tx) error {
	buckets := 0
	err := tx.ForEach(func(name []byte, bucket *bbolt.Bucket) error {
		if string(name) != logsBucket && string(name) != valuesBucket || bucket == nil {
			return fmt.Errorf("an unknown bucket %.40q", name)
		}
		buckets++
		return nil
	})
	if err != nil || buckets == 0 {
		return err
	}
	if buckets != 2 {
		return errors.New("a bucket is missing")
	}
	return tx.Bucket([]byte(valuesBucket)).ForEach(func(key, _ []byte) error {
		if !slices.Contains(stableKeys, string(key)) {
			return fmt.Errorf("a value of the unknown key %.40q", key)
		}
		return nil
	})
}

// checkContent reads every entry, whose terms have to ascend, and every value.
func checkContent(path string, first, last uint64) (err error) {
	bolt, err := raftboltdb.New(raftboltdb.Options{Path: path, BoltOptions: readOnly()})
	if err != nil {
		return logError(path, err)
	}
	defer func() { err = errors.Join(err, bolt.Close()) }()
	term := uint64(0)
	for index := first; index != 0 && index <= last; index++ {
		var log raft.Log
		if err := bolt.GetLog(index, &log); err != nil {
			return fmt.Errorf("log store %s: entry %d %w: %w", path, index, ErrCorrupt, err)
		}
		if err := unsealLog(index, &log); err != nil {
			return fmt.Errorf("log store %s: %w", path, err)
		}
		if log.Term < term {
			return fmt.Errorf("log store %s: entry %d %w: of term %d, after one of term %d",
				path, index, ErrCorrupt, log.Term, term)
		}
		term = log.Term
	}
	for _, key := range stableKeys {
		sealed, err := bolt.Get([]byte(key))
		if errors.Is(err, raftboltdb.ErrKeyNotFound) {
			continue
		}
		if err == nil {
			_, err = unsealValue([]byte(key), sealed)
		}
		if err != nil {
			return fmt.Errorf("log store %s: %w", path, err)
		}
	}
	return nil
}
