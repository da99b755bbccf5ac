package identity

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Sentinels of this package.
var (
	// ErrInUse: another process has the data directory.
	ErrInUse = errors.New("is in use by another process")
	// ErrOtherNode: the data directory is another node's.
	ErrOtherNode = errors.New("belongs to another node")
	// ErrOtherCluster: the node has promised to belong, or belongs, to another
	// cluster (R36).
	ErrOtherCluster = errors.New("belongs to another cluster")
	// ErrRemoved: the node was removed from its cluster and may come back only
	// with an empty data directory (R33).
	ErrRemoved = errors.New("was removed from its cluster")
	// ErrUnreadable: the identity file can't be read or is corrupt.
	ErrUnreadable = errors.New("can't be trusted")
)

const (
	recordFile = "identity.json"
	lockFile   = "lock"
	tmpPattern = "identity.json.tmp"
)

// Dir is a data directory that this process owns. It is safe for concurrent
// use.
type Dir struct {
	path string
	// write replaces the identity file; tests make it fail.
	write func(dir string, content []byte) error

	mu     sync.Mutex
	lock   *os.File
	record Record
}

// Open creates or opens the data directory of the node called name and locks
// it until Close or the end of the process. A directory in use fails at once.
//
// A new identity is drawn only in an empty directory. One that holds anything
// else without an identity file is refused: whatever voted there must not come
// back under the same or another name (R37).
func Open(path, name string) (*Dir, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	if err := create(path); err != nil {
		return nil, fmt.Errorf("create data directory %s: %w", path, err)
	}
	lock, err := lockDir(path)
	if err != nil {
		return nil, err
	}
	d := &Dir{path: path, lock: lock, write: replaceFile}
	if err := d.load(name); err != nil {
		_ = lock.Close()
		return nil, err
	}
	return d, nil
}

// create makes the directory and its parents, and the new entries durable.
func create(path string) error {
	if st, err := os.Stat(path); err == nil {
		if !st.IsDir() {
			return errors.New("is not a directory")
		}
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// load reads the identity file, or draws an identity where there is none.
func (d *Dir) load(name string) error {
	b, err := os.ReadFile(filepath.Join(d.path, recordFile))
	if errors.Is(err, fs.ErrNotExist) {
		return d.draw(name)
	}
	if err != nil {
		return fmt.Errorf("data directory %s: %s %w: %w", d.path, recordFile, ErrUnreadable, err)
	}
	r, err := decode(b)
	if err != nil {
		return fmt.Errorf("data directory %s: %s %w: %w", d.path, recordFile, ErrUnreadable, err)
	}
	if r.Name != name {
		return fmt.Errorf("data directory %s %w: %s, started with --id %s", d.path, ErrOtherNode, r.Name, name)
	}
	if r.Removed {
		return fmt.Errorf("node %s %w %s: to add it anew, empty the data directory %s and add it",
			name, ErrRemoved, r.ClusterID, d.path)
	}
	d.record = r
	return d.tighten()
}

func (d *Dir) draw(name string) error {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return fmt.Errorf("data directory %s: %w", d.path, err)
	}
	for _, e := range entries {
		n := e.Name()
		if n != lockFile && n != "lost+found" && !strings.HasPrefix(n, tmpPattern) {
			return fmt.Errorf("data directory %s holds %.80q but no %s: it is neither empty nor a node's",
				d.path, n, recordFile)
		}
	}
	if err := d.tighten(); err != nil {
		return err
	}
	return d.save(Record{Name: name, Incarnation: randomHex(incarnationLen)})
}

// tighten takes the directory from everybody else: snapshots and logs name
// clients (R23).
func (d *Dir) tighten() error {
	st, err := os.Stat(d.path)
	if err != nil {
		return fmt.Errorf("data directory %s: %w", d.path, err)
	}
	if st.Mode().Perm()&0o077 == 0 {
		return nil
	}
	if err := os.Chmod(d.path, 0o700); err != nil {
		return fmt.Errorf("data directory %s has mode %04o, want 0700 (name a directory below it instead): %w",
			d.path, st.Mode().Perm(), err)
	}
	return nil
}

// save writes r and takes it over. On an error nothing has changed in memory;
// the file has the old content or, where only the last sync failed, the new.
func (d *Dir) save(r Record) error {
	b, err := encode(r)
	if err != nil {
		return fmt.Errorf("encode identity: %w", err)
	}
	if err := d.write(d.path, b); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Join(d.path, recordFile), err)
	}
	d.record = r
	return nil
}

// Close gives the data directory up. It is idempotent.
func (d *Dir) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lock == nil {
		return nil
	}
	err := d.lock.Close()
	d.lock = nil
	return err
}

// RaftID is the node's id in Raft's configuration.
func (d *Dir) RaftID() string { return d.Record().RaftID() }

// Record is a copy of what is on disk.
func (d *Dir) Record() Record {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.record.clone()
}

// Promise binds the node to a cluster and its first members, on disk before it
// returns. Repeating it is harmless; any other cluster or set of members is
// ErrOtherCluster.
func (d *Dir) Promise(clusterID string, members []Member) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := CheckClusterID(clusterID); err != nil {
		return err
	}
	if err := CheckMembers(members, d.record.RaftID()); err != nil {
		return err
	}
	switch {
	case d.record.ClusterID == "":
		r := d.record
		r.ClusterID, r.Members = clusterID, slices.Clone(members)
		return d.save(r)
	case d.record.ClusterID != clusterID:
		return fmt.Errorf("%s %w: %s, not %s", d.record.RaftID(), ErrOtherCluster, d.record.ClusterID, clusterID)
	case !slices.Equal(d.record.Members, members):
		return fmt.Errorf("%s has promised cluster %s with other members", d.record.RaftID(), clusterID)
	}
	return nil
}

// Join binds the node to a cluster that has it as a member already, on disk
// before it returns. Repeating it is harmless; another cluster is
// ErrOtherCluster.
func (d *Dir) Join(clusterID string) error {
	return d.bind(clusterID, func(r *Record) {})
}

// Form notes that Raft has state of the cluster here, on disk before it
// returns. Repeating it is harmless; another cluster than the one promised is
// ErrOtherCluster.
func (d *Dir) Form(clusterID string) error {
	return d.bind(clusterID, func(r *Record) { r.Formed = true })
}

func (d *Dir) bind(clusterID string, change func(*Record)) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := CheckClusterID(clusterID); err != nil {
		return err
	}
	if d.record.ClusterID != "" && d.record.ClusterID != clusterID {
		return fmt.Errorf("%s %w: %s, not %s", d.record.RaftID(), ErrOtherCluster, d.record.ClusterID, clusterID)
	}
	r := d.record
	r.ClusterID = clusterID
	change(&r)
	if r.ClusterID == d.record.ClusterID && r.Formed == d.record.Formed {
		return nil
	}
	return d.save(r)
}

// Remove notes that the node was removed: Open refuses from then on (R33).
func (d *Dir) Remove() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.record
	r.Removed = true
	return d.save(r)
}
