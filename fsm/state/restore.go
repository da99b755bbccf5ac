package state

import (
	"fmt"
	"io"

	"google.golang.org/protobuf/proto"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/check"
	"github.com/quorlease/quorlease/fsm/frames"
	"github.com/quorlease/quorlease/fsm/lineage"
	"github.com/quorlease/quorlease/fsm/record"
)

// restoring is a state in the making.
type restoring struct {
	*State
	header  *logv1.SnapshotHeader
	budgets []*logv1.RetryBudget
	// rank is that of the last record: kinds come in one order, so that each
	// finds what it depends on.
	rank    int
	records uint64
	// shared are the names that leases share, as when they were granted.
	shared record.Names
	ended  bool
}

// Restore reads what Snapshot.WriteTo wrote. The error is frames.ErrNewerVersion
// or frames.ErrCorrupt, or that of the reader. Nothing is believed: memory is taken as
// data arrives, every record is checked, and in the end the sum of the file and the
// state hash must be right.
func Restore(source io.Reader) (*State, error) {
	in := frames.NewReader(source)
	r, err := readRecords(in)
	if err != nil {
		return nil, err
	}
	if err := in.ReadSum(); err != nil {
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	r.Seal()
	if hash := r.Hash(); hash != r.header.GetHash() {
		return nil, fmt.Errorf("read snapshot: the state hash is %016x, not %016x: %w",
			hash, r.header.GetHash(), frames.ErrCorrupt)
	}
	return r.State, nil
}

// readRecords reads everything but the sum.
func readRecords(in *frames.Reader) (*restoring, error) {
	if err := in.ReadHead(); err != nil {
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	r := &restoring{State: New(), shared: make(record.Names)}
	for !r.ended {
		record, err := in.Read()
		if err == nil {
			err = r.add(record)
		}
		if err != nil {
			return nil, fmt.Errorf("read snapshot, record %d: %w", r.records, err)
		}
		r.records++
	}
	return r, nil
}

// The ranks of the kinds of records.
const (
	rankHeader = iota + 1
	rankLimit
	rankBudget
	rankNode
	rankRevision
	rankKey
	rankSession
	rankLease
	rankClient
	rankReport
	rankControl
	rankShare
	rankEscrow
	rankAsker
	rankTrailer
)

// add takes one record.
func (r *restoring) add(record *logv1.SnapshotRecord) error {
	var rank int
	var add func() error
	switch kind := record.GetKind().(type) {
	case *logv1.SnapshotRecord_Header:
		rank, add = rankHeader, func() error { return r.addHeader(kind.Header) }
	case *logv1.SnapshotRecord_Limit:
		rank, add = rankLimit, func() error { return r.addLimit(kind.Limit) }
	case *logv1.SnapshotRecord_Budget:
		rank, add = rankBudget, func() error { return r.addBudget(kind.Budget) }
	case *logv1.SnapshotRecord_Node:
		rank, add = rankNode, func() error { return r.addNode(kind.Node) }
	case *logv1.SnapshotRecord_Revision:
		rank, add = rankRevision, func() error { return r.addRevision(kind.Revision) }
	case *logv1.SnapshotRecord_Key:
		rank, add = rankKey, func() error { return r.addKey(kind.Key) }
	case *logv1.SnapshotRecord_Session:
		rank, add = rankSession, func() error { return r.addSession(kind.Session) }
	case *logv1.SnapshotRecord_Lease:
		rank, add = rankLease, func() error { return r.addLease(kind.Lease) }
	case *logv1.SnapshotRecord_Client:
		rank, add = rankClient, func() error { return r.addClient(kind.Client) }
	case *logv1.SnapshotRecord_Report:
		rank, add = rankReport, func() error { return r.addReport(kind.Report) }
	case *logv1.SnapshotRecord_Control:
		rank, add = rankControl, func() error { return r.addControl(kind.Control) }
	case *logv1.SnapshotRecord_Share:
		rank, add = rankShare, func() error { return r.Shares.Load(kind.Share, r.Now) }
	case *logv1.SnapshotRecord_Escrow:
		rank, add = rankEscrow, func() error { return r.addEscrow(kind.Escrow) }
	case *logv1.SnapshotRecord_Asker:
		rank, add = rankAsker, func() error { return r.Ledger.LoadAsker(kind.Asker, r.Now) }
	case *logv1.SnapshotRecord_Trailer:
		rank, add = rankTrailer, func() error { return r.addTrailer(kind.Trailer) }
	default:
		return frames.Corrupt("no kind that is known")
	}
	if rank < r.rank || (rank == rankHeader) != (r.rank == 0) {
		return frames.Corrupt("kind %d after kind %d", rank, r.rank)
	}
	if rank > rankBudget && r.rank <= rankBudget {
		r.SetBudgets(r.budgets)
	}
	r.rank = rank
	return add()
}

func (r *restoring) addHeader(h *logv1.SnapshotHeader) error {
	caps, err := check.Caps(h.GetCaps())
	switch {
	case err != nil:
		return frames.Corrupt("%v", err)
	case !proto.Equal(caps, h.GetCaps()):
		return frames.Corrupt("caps are left out")
	case h.GetClusterId() != "" && !check.IsClusterID(h.GetClusterId()):
		return frames.Corrupt("cluster id %q", check.Clip(h.GetClusterId()))
	case h.GetNow() < 0 || h.GetNow() > int64(check.LastInstant):
		return frames.Corrupt("now %d: must be from 0 to %d", h.GetNow(), check.LastInstant)
	case h.GetNextLimit() == 0:
		return frames.Corrupt("next limit 0")
	}
	r.header = h
	r.ClusterID, r.Caps, r.Index = h.GetClusterId(), caps, h.GetIndex()
	r.Now, r.Wall = bucket.Instant(h.GetNow()), h.GetWall()
	r.Revision, r.nextLimit = h.GetRevision(), h.GetNextLimit()
	return r.Shares.LoadOutages(h.GetOutages(), r.Now)
}

func (r *restoring) addLimit(saved *logv1.SnapshotLimit) error {
	l, err := lineage.Load(saved, r.Now)
	switch {
	case err != nil:
		return frames.Corrupt("%v", err)
	case l.ID >= r.nextLimit || r.limitsByID[l.ID] != nil || r.limits[l.Name] != nil:
		return frames.Corrupt("limit %d, %q: is there twice or beyond %d", l.ID, l.Name, r.nextLimit)
	case int64(len(r.limits)) >= r.Caps.GetLimits():
		return frames.Corrupt("more than %d limits", r.Caps.GetLimits())
	}
	r.AddLimit(l)
	return nil
}

func (r *restoring) addBudget(b *logv1.RetryBudget) error {
	if err := check.Budget(b); err != nil {
		return frames.Corrupt("%v", err)
	}
	if n := len(r.budgets); int64(n) >= r.Caps.GetLimits() || n > 0 && r.budgets[n-1].GetName() >= b.GetName() {
		return frames.Corrupt("retry budget %q: out of order, or more than %d", b.GetName(), r.Caps.GetLimits())
	}
	r.budgets = append(r.budgets, b)
	return nil
}

func (r *restoring) addNode(n *logv1.NodeRecord) error {
	if err := check.Node(n); err != nil {
		return frames.Corrupt("%v", err)
	}
	if _, found := r.FindNode(n.GetRaftId()); found || len(r.nodes) >= check.MaxNodes {
		return frames.Corrupt("node %q: is there twice, or more than %d", check.Clip(n.GetRaftId()), check.MaxNodes)
	}
	r.SetNode(n)
	return nil
}

func (r *restoring) addRevision(saved *logv1.SnapshotRevision) error {
	last := len(r.history.list) - 1
	if last >= 0 && r.history.list[last].Revision >= saved.GetRevision() || saved.GetRevision() > r.Revision {
		return frames.Corrupt("revision %d: out of order, or beyond %d", saved.GetRevision(), r.Revision)
	}
	r.Remember(record.LoadRevision(saved))
	return nil
}

func (r *restoring) addKey(saved *logv1.SnapshotKey) error {
	lim := r.limitsByID[saved.GetLimit()]
	if lim == nil {
		return frames.Corrupt("key of limit %d, which there is not", saved.GetLimit())
	}
	v := lim.At(saved.GetPassed())
	switch {
	case v == nil || len(v.Dimensions) != len(saved.GetBuckets()):
		return frames.Corrupt("key of limit %q: %d buckets of version %d",
			lim.Name, len(saved.GetBuckets()), saved.GetPassed())
	case len(saved.GetName()) > check.MaxKey || !check.Printable(saved.GetName()):
		return frames.Corrupt("key of limit %q: %q is no key", lim.Name, check.Clip(saved.GetName()))
	case int64(r.keys.Len()) >= r.Caps.GetKeys()+int64(len(r.limits)):
		return frames.Corrupt("more than %d keys", r.Caps.GetKeys())
	case r.FindKey(lim.ID, saved.GetName()) != nil:
		return frames.Corrupt("key %q of limit %q: is there twice", check.Clip(saved.GetName()), lim.Name)
	}
	k := &Key{Name: saved.GetName(), LimitID: lim.ID, Passed: saved.GetPassed()}
	k.hold(make([]lineage.Held, len(v.Dimensions)))
	for i, b := range saved.GetBuckets() {
		var err error
		if k.Held(i).Bucket, err = lineage.LoadBucket(v.For(k.Name).Dimensions[i].Shape, b, r.Now); err != nil {
			return frames.Corrupt("key %q of limit %q: %v", check.Clip(k.Name), lim.Name, err)
		}
	}
	var err error
	if k.rare, err = loadRare(saved); err != nil {
		return frames.Corrupt("key %q of limit %q: %v", check.Clip(k.Name), lim.Name, err)
	}
	r.insertKey(lim, k)
	return nil
}

func (r *restoring) addTrailer(t *logv1.SnapshotTrailer) error {
	if t.GetRecords() != r.records {
		return frames.Corrupt("%d records instead of %d", r.records, t.GetRecords())
	}
	r.ended = true
	return r.checkSessions()
}
