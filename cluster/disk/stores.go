package disk

import "github.com/hashicorp/raft"

// LogStore returns s, watched. It goes below raft.LogCache, which would
// answer for a disk that it no longer asks.
func (w *Watchdog) LogStore(s raft.LogStore) raft.LogStore { return &logStore{w, s} }

// StableStore returns s, watched.
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
	return s.dog.watch("read log", isNoEntry, func() error { return s.inner.GetLog(index, log) })
}

func (s *logStore) StoreLog(log *raft.Log) error {
	return s.dog.watch("write log", never, func() error { return s.inner.StoreLog(log) })
}

func (s *logStore) StoreLogs(logs []*raft.Log) error {
	return s.dog.watch("write log", never, func() error { return s.inner.StoreLogs(logs) })
}

func (s *logStore) DeleteRange(first, last uint64) error {
	return s.dog.watch("compact log", never, func() error { return s.inner.DeleteRange(first, last) })
}

type stableStore struct {
	dog   *Watchdog
	inner raft.StableStore
}

func (s *stableStore) Set(key, value []byte) error {
	return s.dog.watch("write vote", never, func() error { return s.inner.Set(key, value) })
}

func (s *stableStore) Get(key []byte) (value []byte, err error) {
	err = s.dog.watch("read vote", isNoKey, func() error {
		value, err = s.inner.Get(key)
		return err
	})
	return value, err
}

func (s *stableStore) SetUint64(key []byte, value uint64) error {
	return s.dog.watch("write term", never, func() error { return s.inner.SetUint64(key, value) })
}

func (s *stableStore) GetUint64(key []byte) (value uint64, err error) {
	err = s.dog.watch("read term", isNoKey, func() error {
		value, err = s.inner.GetUint64(key)
		return err
	})
	return value, err
}
