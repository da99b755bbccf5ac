package fsm

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"

	"google.golang.org/protobuf/proto"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/lineage"
)

// recordMost bounds a record of a snapshot. The largest is a limit with many
// versions or a revision with many changes.
const recordMost = 16 << 20

// restoring is a machine in the making.
type restoring struct {
	*Machine
	header  *logv1.SnapshotHeader
	budgets []*logv1.RetryBudget
	// rank is that of the last record: kinds come in one order, so that each
	// finds what it depends on.
	rank    int
	records uint64
	// counted is shared by leases, as when they were granted.
	shared map[counted]*counted
	ended  bool
}

// Restore reads what Snapshot.WriteTo wrote. The error is ErrNewerVersion or
// ErrCorrupt, or that of the reader. Nothing is believed: memory is taken as data
// arrives, every record is checked, and in the end the sum of the file and the
// state hash must be right.
func Restore(source io.Reader) (*Machine, error) {
	in := &recordReader{in: bufio.NewReaderSize(source, 64<<10), hash: sha256.New()}
	if err := in.readHead(); err != nil {
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	r := &restoring{Machine: New(), shared: make(map[counted]*counted)}
	for !r.ended {
		record, err := in.read()
		if err == nil {
			err = r.add(record)
		}
		if err != nil {
			return nil, fmt.Errorf("read snapshot, record %d: %w", r.records, err)
		}
		r.records++
	}
	if err := in.readSum(); err != nil {
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	r.seal()
	if hash := r.Hash(); hash != r.header.GetHash() {
		return nil, fmt.Errorf("read snapshot: the state hash is %016x, not %016x: %w", hash, r.header.GetHash(), ErrCorrupt)
	}
	return r.Machine, nil
}

func corrupt(format string, values ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, values...), ErrCorrupt)
}

// add takes one record.
func (r *restoring) add(record *logv1.SnapshotRecord) error {
	var rank int
	var add func() error
	switch kind := record.GetKind().(type) {
	case *logv1.SnapshotRecord_Header:
		rank, add = 1, func() error { return r.addHeader(kind.Header) }
	case *logv1.SnapshotRecord_Limit:
		rank, add = 2, func() error { return r.addLimit(kind.Limit) }
	case *logv1.SnapshotRecord_Budget:
		rank, add = 3, func() error { return r.addBudget(kind.Budget) }
	case *logv1.SnapshotRecord_Node:
		rank, add = 4, func() error { return r.addNode(kind.Node) }
	case *logv1.SnapshotRecord_Revision:
		rank, add = 5, func() error { return r.addRevision(kind.Revision) }
	case *logv1.SnapshotRecord_Key:
		rank, add = 6, func() error { return r.addKey(kind.Key) }
	case *logv1.SnapshotRecord_Lease:
		rank, add = 7, func() error { return r.addLease(kind.Lease) }
	case *logv1.SnapshotRecord_Client:
		rank, add = 8, func() error { return r.addClient(kind.Client) }
	case *logv1.SnapshotRecord_Trailer:
		rank, add = 9, func() error { return r.addTrailer(kind.Trailer) }
	default:
		return corrupt("no kind that is known")
	}
	if rank < r.rank || (rank == 1) != (r.rank == 0) {
		return corrupt("kind %d after kind %d", rank, r.rank)
	}
	if rank > 3 && r.rank <= 3 {
		r.Machine.budgets = newBudgets(r.budgets)
	}
	r.rank = rank
	return add()
}

func (r *restoring) addHeader(h *logv1.SnapshotHeader) error {
	caps, err := checkCaps(h.GetCaps())
	switch {
	case err != nil:
		return corrupt("%v", err)
	case !proto.Equal(caps, h.GetCaps()):
		return corrupt("caps are left out")
	case h.GetClusterId() != "" && !isClusterID(h.GetClusterId()):
		return corrupt("cluster id %q", clip(h.GetClusterId()))
	case h.GetNow() < 0 || h.GetNow() > int64(lastInstant):
		return corrupt("now %d: must be from 0 to %d", h.GetNow(), lastInstant)
	case h.GetNextLimit() == 0:
		return corrupt("next limit 0")
	}
	r.header = h
	r.clusterID, r.caps, r.index = h.GetClusterId(), caps, h.GetIndex()
	r.clock = clock{now: bucket.Instant(h.GetNow()), wall: h.GetWall()}
	r.revision, r.nextLimit = h.GetRevision(), h.GetNextLimit()
	return nil
}

func (r *restoring) addLimit(saved *logv1.SnapshotLimit) error {
	l, err := lineage.Load(saved, r.clock.now)
	switch {
	case err != nil:
		return corrupt("%v", err)
	case l.ID >= r.nextLimit || r.limitsByID[l.ID] != nil || r.limits[l.Name] != nil:
		return corrupt("limit %d, %q: is there twice or beyond %d", l.ID, l.Name, r.nextLimit)
	case int64(len(r.limits)) >= r.caps.GetLimits():
		return corrupt("more than %d limits", r.caps.GetLimits())
	}
	r.Machine.addLimit(l)
	return nil
}

func (r *restoring) addBudget(b *logv1.RetryBudget) error {
	if err := checkBudget(len(r.budgets), b); err != nil {
		return corrupt("%v", err)
	}
	if n := len(r.budgets); int64(n) >= r.caps.GetLimits() || n > 0 && r.budgets[n-1].GetName() >= b.GetName() {
		return corrupt("retry budget %q: out of order, or more than %d", b.GetName(), r.caps.GetLimits())
	}
	r.budgets = append(r.budgets, b)
	r.sum += sumBudget(b)
	return nil
}

func (r *restoring) addNode(n *logv1.NodeRecord) error {
	if last := len(r.nodes) - 1; last >= 0 && r.nodes[last].GetRaftId() >= n.GetRaftId() || last+1 >= nodesMost {
		return corrupt("node %q: out of order, or more than %d", clip(n.GetRaftId()), nodesMost)
	}
	if err := checkNode(n); err != nil {
		return corrupt("%v", err)
	}
	r.nodes = append(r.nodes, n)
	r.sum += sumNode(n)
	return nil
}

func (r *restoring) addRevision(saved *logv1.SnapshotRevision) error {
	if last := len(r.history.list) - 1; last >= 0 && r.history.list[last].Revision >= saved.GetRevision() ||
		last+1 >= historyMost || saved.GetRevision() > r.revision {
		return corrupt("revision %d: out of order, beyond %d, or more than %d", saved.GetRevision(), r.revision, historyMost)
	}
	r.remember(&Revision{
		Revision: saved.GetRevision(), Now: bucket.Instant(saved.GetNow()), Wall: saved.GetWall(),
		Author: saved.GetAuthor(), Changes: saved.GetChanges(),
	})
	return nil
}

func (r *restoring) addKey(saved *logv1.SnapshotKey) error {
	lim := r.limitsByID[saved.GetLimit()]
	if lim == nil {
		return corrupt("key of limit %d, which there is not", saved.GetLimit())
	}
	v := lim.At(saved.GetPassed())
	switch {
	case v == nil || len(v.Dimensions) != len(saved.GetBuckets()):
		return corrupt("key of limit %q: %d buckets of version %d", lim.Name, len(saved.GetBuckets()), saved.GetPassed())
	case len(saved.GetName()) > maxKey || !printable(saved.GetName()):
		return corrupt("key of limit %q: %q is no key", lim.Name, clip(saved.GetName()))
	case int64(r.keys.Len()) >= r.caps.GetKeys()+int64(len(r.limits)):
		return corrupt("more than %d keys", r.caps.GetKeys())
	case r.keys.Find(keyID{lim.ID, saved.GetName()}) != nil:
		return corrupt("key %q of limit %q: is there twice", clip(saved.GetName()), lim.Name)
	}
	k := &key{name: saved.GetName(), limit: lim.ID, passed: saved.GetPassed()}
	if n := len(v.Dimensions); n > 1 {
		k.rest = make([]lineage.Held, n-1)
	}
	for i, b := range saved.GetBuckets() {
		var err error
		if k.held(i).Bucket, err = lineage.LoadBucket(v.Dimensions[i].Shape, b, r.clock.now); err != nil {
			return corrupt("key %q of limit %q: %v", clip(k.name), lim.Name, err)
		}
	}
	r.keys.Insert(k)
	lim.keys.Set(k, int64(lineage.Never))
	lim.pass(k.passed, 1)
	r.touchKey(lim, k)
	return nil
}

func (r *restoring) addTrailer(t *logv1.SnapshotTrailer) error {
	if t.GetRecords() != r.records {
		return corrupt("%d records instead of %d", r.records, t.GetRecords())
	}
	r.ended = true
	return nil
}

// recordReader takes records out of a stream.
type recordReader struct {
	in     *bufio.Reader
	hash   hash.Hash
	buffer []byte
}

func (r *recordReader) readHead() error {
	if err := r.fill(snapshotHead); err != nil {
		return err
	}
	if !bytes.Equal(r.buffer[:len(snapshotMagic)], []byte(snapshotMagic)) {
		return corrupt("it does not begin with %s", snapshotMagic)
	}
	switch version := r.buffer[len(snapshotMagic)]; {
	case version > snapshotVersion:
		return fmt.Errorf("version %d, this program reads up to %d: %w", version, snapshotVersion, ErrNewerVersion)
	case version < snapshotVersion:
		return corrupt("version %d", version)
	}
	return nil
}

func (r *recordReader) read() (*logv1.SnapshotRecord, error) {
	size, err := binary.ReadUvarint(r.in)
	if err != nil {
		return nil, unexpected(err)
	}
	if size > recordMost {
		return nil, corrupt("%d bytes, at most %d", size, recordMost)
	}
	r.hash.Write(binary.AppendUvarint(nil, size))
	if err := r.fill(int(size)); err != nil {
		return nil, err
	}
	record := &logv1.SnapshotRecord{}
	if err := proto.Unmarshal(r.buffer, record); err != nil {
		return nil, corrupt("%v", err)
	}
	return record, nil
}

// fill reads the next n bytes. A length is only a claim: memory grows with what
// has arrived.
func (r *recordReader) fill(n int) error {
	const step = 64 << 10
	r.buffer = r.buffer[:0]
	for len(r.buffer) < n {
		have := len(r.buffer)
		r.buffer = slices.Grow(r.buffer, min(step, n-have))[:have+min(step, n-have)]
		if _, err := io.ReadFull(r.in, r.buffer[have:]); err != nil {
			return unexpected(err)
		}
	}
	r.hash.Write(r.buffer)
	return nil
}

// readSum checks the sum, and that nothing comes after it.
func (r *recordReader) readSum() error {
	want := r.hash.Sum(nil)
	if err := r.fill(len(want)); err != nil {
		return err
	}
	if !bytes.Equal(want, r.buffer) {
		return corrupt("the checksum differs")
	}
	if _, err := r.in.ReadByte(); !errors.Is(err, io.EOF) {
		return corrupt("there is more after the end")
	}
	return nil
}

// unexpected: a file that ends too early is corrupt; an error of the disk is
// itself.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return corrupt("it ends too early")
	}
	return err
}
