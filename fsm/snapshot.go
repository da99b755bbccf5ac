package fsm

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"io"

	"google.golang.org/protobuf/proto"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/lineage"
	"github.com/quorlease/quorlease/fsm/store"
)

// A snapshot is a magic word with a version, then records, each with its length
// before it as a varint, then the SHA-256 of all that. The order of the records
// within a kind means nothing.
const (
	snapshotMagic   = "QUORLEAS"
	snapshotVersion = 1
	snapshotHead    = len(snapshotMagic) + 1
)

// Snapshot is the state as it was, for writing it out while entries are applied.
type Snapshot struct {
	header   *logv1.SnapshotHeader
	lineages []*lineage.Lineage
	budgets  []*logv1.RetryBudget
	nodes    []*logv1.NodeRecord
	history  []*Revision
	keys     store.Frozen[key, *key]
	leases   store.Frozen[lease, *lease]
	clients  store.Frozen[client, *client]
}

// Snapshot keeps the state as it is now. It copies a list of shards, not what is
// in them: what changes later is copied when it changes.
func (m *Machine) Snapshot() *Snapshot {
	s := &Snapshot{
		header: &logv1.SnapshotHeader{
			ClusterId: m.clusterID, Caps: m.caps, Now: int64(m.clock.now), Wall: m.clock.wall,
			Revision: m.revision, NextLimit: m.nextLimit, Hash: m.Hash(), Index: m.index,
		},
		lineages: make([]*lineage.Lineage, 0, len(m.limits)),
		budgets:  m.budgets.list,
		nodes:    m.nodes,
		history:  m.history.list,
		keys:     m.keys.Freeze(),
		leases:   m.leases.Freeze(),
		clients:  m.clients.Freeze(),
	}
	// The order does not matter: see the format.
	for _, lim := range m.limits {
		s.lineages = append(s.lineages, lim.Lineage)
	}
	return s
}

// Index is that of the last entry that the snapshot contains.
func (s *Snapshot) Index() uint64 { return s.header.GetIndex() }

// Release lets go of the state that was kept. A snapshot is not written after it.
func (s *Snapshot) Release() { *s = Snapshot{header: s.header} }

// WriteTo writes the snapshot. It may run beside everything that the machine
// does.
func (s *Snapshot) WriteTo(w io.Writer) (int64, error) {
	out := newRecordWriter(w)
	out.write(&logv1.SnapshotRecord{Kind: &logv1.SnapshotRecord_Header{Header: s.header}})
	for _, l := range s.lineages {
		out.write(&logv1.SnapshotRecord{Kind: &logv1.SnapshotRecord_Limit{Limit: l.Save()}})
	}
	for _, b := range s.budgets {
		out.write(&logv1.SnapshotRecord{Kind: &logv1.SnapshotRecord_Budget{Budget: b}})
	}
	for _, n := range s.nodes {
		out.write(&logv1.SnapshotRecord{Kind: &logv1.SnapshotRecord_Node{Node: n}})
	}
	for _, r := range s.history {
		out.write(&logv1.SnapshotRecord{Kind: &logv1.SnapshotRecord_Revision{Revision: saveRevision(r)}})
	}
	s.writeKeys(out)
	for l := range s.leases.All() {
		out.write(&logv1.SnapshotRecord{Kind: &logv1.SnapshotRecord_Lease{Lease: saveLease(l)}})
	}
	for c := range s.clients.All() {
		out.write(&logv1.SnapshotRecord{Kind: &logv1.SnapshotRecord_Client{Client: saveClient(c)}})
	}
	trailer := &logv1.SnapshotTrailer{Records: out.records}
	out.write(&logv1.SnapshotRecord{Kind: &logv1.SnapshotRecord_Trailer{Trailer: trailer}})
	return out.close()
}

// writeKeys uses one message for a million keys.
func (s *Snapshot) writeKeys(out *recordWriter) {
	byID := make(map[uint32]*lineage.Lineage, len(s.lineages))
	for _, l := range s.lineages {
		byID[l.ID] = l
	}
	one := &logv1.SnapshotKey{}
	record := &logv1.SnapshotRecord{Kind: &logv1.SnapshotRecord_Key{Key: one}}
	for k := range s.keys.All() {
		one.Limit, one.Name, one.Passed = k.limit, k.name, k.passed
		one.Buckets = one.Buckets[:0]
		for i := range byID[k.limit].At(k.passed).Dimensions {
			one.Buckets = append(one.Buckets, lineage.SaveBucket(&k.held(i).Bucket))
		}
		out.write(record)
	}
}

func saveRevision(r *Revision) *logv1.SnapshotRevision {
	return &logv1.SnapshotRevision{
		Revision: r.Revision, Now: int64(r.Now), Wall: r.Wall, Author: r.Author, Changes: r.Changes,
	}
}

func saveLease(l *lease) *logv1.SnapshotLease {
	saved := &logv1.SnapshotLease{
		Id: l.id[:], Owner: l.owner, Client: l.client, State: l.state, Unknown: l.unknown,
		Content: l.content, Settled: l.settled, Renewed: l.renewed, Sequence: l.sequence,
		SpendUntil: int64(l.spendUntil), SettleUntil: int64(l.settleUntil), ForgetAt: int64(l.forgetAt),
		Charges: make([]*logv1.SnapshotCharge, len(l.charges)),
	}
	for i := range l.charges {
		c := &l.charges[i]
		saved.Charges[i] = &logv1.SnapshotCharge{
			Limit: c.limit, Dimension: c.dimension, LimitName: c.limitName, DimensionName: c.dimensionName,
			Key: c.key, Amount: c.amount, Class: c.class, Took: c.took, TookUnit: c.tookUnit,
			Refundable: c.refundable, Used: c.used, Refunded: c.refunded, Excess: c.excess, WrittenOff: c.writtenOff,
		}
	}
	return saved
}

func saveClient(c *client) *logv1.SnapshotClient {
	saved := &logv1.SnapshotClient{Name: c.name, SliceLength: int64(c.slice)}
	for i := range c.sources {
		s := &c.sources[i]
		source := &logv1.SnapshotSource{Node: s.node, Boot: s.boot}
		s.counts.Walk(func(slice, total, retries int64) {
			source.Counts = append(source.Counts, &logv1.SnapshotCount{Slice: slice, Total: total, Retries: retries})
		})
		saved.Sources = append(saved.Sources, source)
	}
	return saved
}

// recordWriter frames records, and keeps the first error.
type recordWriter struct {
	target  io.Writer
	out     *bufio.Writer
	hash    hash.Hash
	buffer  []byte
	written int64
	records uint64
	err     error
}

func newRecordWriter(w io.Writer) *recordWriter {
	r := &recordWriter{target: w, hash: sha256.New()}
	r.out = bufio.NewWriterSize(io.MultiWriter(w, r.hash), 64<<10)
	r.put(append([]byte(snapshotMagic), snapshotVersion))
	return r
}

func (r *recordWriter) put(data []byte) {
	if r.err != nil {
		return
	}
	n, err := r.out.Write(data)
	r.written += int64(n)
	r.err = err
}

func (r *recordWriter) write(record *logv1.SnapshotRecord) {
	if r.err != nil {
		return
	}
	size := proto.Size(record)
	if size > recordMost {
		r.err = fmt.Errorf("record %d has %d bytes, at most %d", r.records, size, recordMost)
		return
	}
	r.buffer = binary.AppendUvarint(r.buffer[:0], uint64(size))
	r.buffer, r.err = proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(r.buffer, record)
	r.put(r.buffer)
	r.records++
}

// close writes the sum, which is not part of itself.
func (r *recordWriter) close() (int64, error) {
	if r.err == nil {
		r.err = r.out.Flush()
	}
	if r.err == nil {
		var n int
		n, r.err = r.target.Write(r.hash.Sum(nil))
		r.written += int64(n)
	}
	return r.written, r.err
}
