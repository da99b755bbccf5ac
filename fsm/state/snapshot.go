package state

import (
	"io"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/frames"
	"github.com/quorlease/quorlease/fsm/ledger"
	"github.com/quorlease/quorlease/fsm/lineage"
	"github.com/quorlease/quorlease/fsm/shares"
	"github.com/quorlease/quorlease/fsm/store"
)

// Snapshot is the state as it was, for writing it out while entries are applied.
type Snapshot struct {
	header   *logv1.SnapshotHeader
	lineages []*lineage.Lineage
	budgets  []*logv1.RetryBudget
	nodes    []*logv1.NodeRecord
	history  []*Revision
	keys     store.Frozen[Key, *Key]
	sessions store.Frozen[Session, *Session]
	leases   store.Frozen[Lease, *Lease]
	clients  store.Frozen[Client, *Client]
	reports  store.Frozen[Report, *Report]
	controls store.Frozen[Control, *Control]
	shares   shares.Frozen
	ledger   ledger.Frozen
}

// Snapshot keeps the state as it is now, between entries. It copies lists of
// shards, not what is in them: what changes later is copied when it changes.
func (s *State) Snapshot() *Snapshot {
	snapshot := &Snapshot{
		header: &logv1.SnapshotHeader{
			ClusterId: s.ClusterID, Caps: s.Caps, Now: int64(s.Now), Wall: s.Wall,
			Revision: s.Revision, NextLimit: s.nextLimit, Hash: s.Hash(), Index: s.Index,
			Outages: s.Shares.SaveOutages(),
		},
		lineages: make([]*lineage.Lineage, 0, len(s.limits)),
		budgets:  s.budgets.list,
		nodes:    s.nodes,
		history:  s.history.list,
		keys:     s.keys.Freeze(),
		sessions: s.sessions.Freeze(),
		leases:   s.leases.Freeze(),
		clients:  s.clients.Freeze(),
		reports:  s.reports.Freeze(),
		controls: s.controls.Freeze(),
		shares:   s.Shares.Freeze(),
		ledger:   s.Ledger.Freeze(),
	}
	// The order of records of one kind means nothing.
	for _, lim := range s.limits {
		snapshot.lineages = append(snapshot.lineages, lim.Lineage)
	}
	return snapshot
}

// Index is that of the last entry that the snapshot contains.
func (s *Snapshot) Index() uint64 { return s.header.GetIndex() }

// Release lets go of the state that was kept. A snapshot is not written after it.
func (s *Snapshot) Release() { *s = Snapshot{header: s.header} }

// WriteTo writes the snapshot. It may run beside everything that the state's
// owner does.
func (s *Snapshot) WriteTo(w io.Writer) (int64, error) {
	out := frames.NewWriter(w)
	out.Write(&logv1.SnapshotRecord{Kind: &logv1.SnapshotRecord_Header{Header: s.header}})
	for _, l := range s.lineages {
		out.Write(&logv1.SnapshotRecord{Kind: &logv1.SnapshotRecord_Limit{Limit: l.Save()}})
	}
	for _, b := range s.budgets {
		out.Write(&logv1.SnapshotRecord{Kind: &logv1.SnapshotRecord_Budget{Budget: b}})
	}
	for _, n := range s.nodes {
		out.Write(&logv1.SnapshotRecord{Kind: &logv1.SnapshotRecord_Node{Node: n}})
	}
	for _, r := range s.history {
		out.Write(&logv1.SnapshotRecord{Kind: &logv1.SnapshotRecord_Revision{Revision: r.Save()}})
	}
	s.writeKeys(out)
	for one := range s.sessions.All() {
		out.Write(&logv1.SnapshotRecord{Kind: &logv1.SnapshotRecord_Session{Session: one.Save()}})
	}
	for l := range s.leases.All() {
		out.Write(&logv1.SnapshotRecord{Kind: &logv1.SnapshotRecord_Lease{Lease: l.Save()}})
	}
	for c := range s.clients.All() {
		out.Write(&logv1.SnapshotRecord{Kind: &logv1.SnapshotRecord_Client{Client: saveClient(c)}})
	}
	for r := range s.reports.All() {
		out.Write(&logv1.SnapshotRecord{Kind: &logv1.SnapshotRecord_Report{Report: r.Save()}})
	}
	for c := range s.controls.All() {
		out.Write(&logv1.SnapshotRecord{Kind: &logv1.SnapshotRecord_Control{Control: c.Save()}})
	}
	for e := range s.shares.All() {
		out.Write(&logv1.SnapshotRecord{Kind: &logv1.SnapshotRecord_Share{Share: e.Save()}})
	}
	s.ledger.Write(out)
	trailer := &logv1.SnapshotTrailer{Records: out.Records}
	out.Write(&logv1.SnapshotRecord{Kind: &logv1.SnapshotRecord_Trailer{Trailer: trailer}})
	return out.Close()
}

// writeKeys uses one message for a million keys.
func (s *Snapshot) writeKeys(out *frames.Writer) {
	byID := make(map[uint32]*lineage.Lineage, len(s.lineages))
	for _, l := range s.lineages {
		byID[l.ID] = l
	}
	one := &logv1.SnapshotKey{}
	record := &logv1.SnapshotRecord{Kind: &logv1.SnapshotRecord_Key{Key: one}}
	for k := range s.keys.All() {
		one.Limit, one.Name, one.Passed = k.LimitID, k.Name, k.Passed
		one.Client, one.Warned, one.Withheld = "", nil, nil
		if k.rare != nil {
			one.Client, one.Warned, one.Withheld = k.rare.maker, k.rare.warned, k.rare.withheld
		}
		one.Buckets = one.Buckets[:0]
		for i := range byID[k.LimitID].At(k.Passed).Dimensions {
			one.Buckets = append(one.Buckets, lineage.SaveBucket(&k.Held(i).Bucket))
		}
		out.Write(record)
	}
}

func saveClient(c *Client) *logv1.SnapshotClient {
	saved := &logv1.SnapshotClient{Name: c.Name}
	c.Tally.Save(saved)
	return saved
}
