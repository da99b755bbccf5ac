package disk

import (
	"encoding/binary"
	"fmt"

	"github.com/hashicorp/raft"
)

// LogStore returns s, watched, with a checksum on every entry. It goes below
// raft.LogCache, which would answer for a disk that it no longer asks.
func (w *Watchdog) LogStore(s raft.LogStore) raft.LogStore { return &logStore{w, s} }

// StableStore returns s, watched, with a checksum on every value. Like the
// entries, the values are readable through it only.
func (w *Watchdog) StableStore(s raft.StableStore) raft.StableStore { return &stableStore{w, s} }

type logStore struct {
	dog   *Watchdog
	inner raft.LogStore
}

var _ raft.MonotonicLogStore = (*logStore)(nil)

// IsMonotonic passes on what the store says of itself.
func (s *logStore) IsMonotonic() bool {
	inner, ok := s.inner.(raft.MonotonicLogStore)
	return ok && inner.IsMonotonic()
}

func (s *logStore) FirstIndex() (index uint64, err error) {
	err = s.dog.watch("first index", never, func() error {
		index, err = s.inner.FirstIndex()
		return err
	})
	return index, err
}

func (s *logStore) LastIndex() (index uint64, err error) {
	err = s.dog.watch("last index", never, func() error {
		index, err = s.inner.LastIndex()
		return err
	})
	return index, err
}

func (s *logStore) GetLog(index uint64, log *raft.Log) error {
	return s.dog.watch("read log", isNoEntry, func() error {
		if err := s.inner.GetLog(index, log); err != nil {
			return err
		}
		return unsealLog(index, log)
	})
}

func (s *logStore) StoreLog(log *raft.Log) error { return s.StoreLogs([]*raft.Log{log}) }

func (s *logStore) StoreLogs(logs []*raft.Log) error {
	sealed := make([]*raft.Log, len(logs))
	for i, log := range logs {
		sealed[i] = sealLog(log)
	}
	return s.dog.watch("write log", never, func() error { return s.inner.StoreLogs(sealed) })
}

func (s *logStore) DeleteRange(first, last uint64) error {
	return s.dog.watch("compact log", never, func() error { return s.inner.DeleteRange(first, last) })
}

type stableStore struct {
	dog   *Watchdog
	inner raft.StableStore
}

func (s *stableStore) Set(key, value []byte) error {
	sealed := sealValue(key, value)
	return s.dog.watch("write vote", never, func() error { return s.inner.Set(key, sealed) })
}

func (s *stableStore) Get(key []byte) (value []byte, err error) {
	err = s.dog.watch("read vote", isNoKey, func() error {
		sealed, err := s.inner.Get(key)
		if err == nil {
			value, err = unsealValue(key, sealed)
		}
		return err
	})
	return value, err
}

func (s *stableStore) SetUint64(key []byte, value uint64) error {
	return s.Set(key, binary.BigEndian.AppendUint64(nil, value))
}

func (s *stableStore) GetUint64(key []byte) (uint64, error) {
	value, err := s.Get(key)
	if err != nil {
		return 0, err
	}
	if len(value) != 8 {
		return 0, fmt.Errorf("value of %q %w: %d bytes, want 8", key, ErrCorrupt, len(value))
	}
	return binary.BigEndian.Uint64(value), nil
}
