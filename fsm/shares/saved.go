package shares

import (
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/check"
	"github.com/quorlease/quorlease/fsm/frames"
	"github.com/quorlease/quorlease/fsm/lineage"
	"github.com/quorlease/quorlease/fsm/record"
	"github.com/quorlease/quorlease/fsm/store"
)

// Frozen are the entries as they were.
type Frozen = store.Frozen[Entry, *Entry]

// Freeze keeps the entries as they are now.
func (b *Book) Freeze() Frozen { return b.table.Freeze() }

// Save is the entry for a snapshot.
func (e *Entry) Save() *logv1.SnapshotShare {
	saved := &logv1.SnapshotShare{
		Limit: e.ID.Limit, Session: e.ID.Session[:], Owner: e.ID.Owner, Heard: int64(e.heard),
		Earned: e.earned, Lapsed: e.lapsed, Outlived: int64(e.outlived),
	}
	for _, p := range e.promises {
		saved.Promises = append(saved.Promises, &logv1.Promise{Version: p.Version, Ppm: p.PPM})
	}
	return saved
}

// SaveOutages are the outages for a snapshot.
func (b *Book) SaveOutages() []*logv1.Outage {
	var saved []*logv1.Outage
	// The order of limits means nothing.
	for limit, outages := range b.outages {
		for _, o := range outages {
			saved = append(saved, &logv1.Outage{Limit: limit, From: int64(o.From), To: int64(o.To)})
		}
	}
	return saved
}

// LoadOutages takes back what SaveOutages gave. The error is a frames.ErrCorrupt.
func (b *Book) LoadOutages(saved []*logv1.Outage, now bucket.Instant) error {
	for _, one := range saved {
		o, last := Outage{bucket.Instant(one.GetFrom()), bucket.Instant(one.GetTo())}, bucket.Instant(0)
		known := b.Outages(one.GetLimit())
		if len(known) > 0 {
			last = known[len(known)-1].To
		}
		switch {
		case !lineage.IsName(one.GetLimit()) || len(known) == MaxOutages:
			return frames.Corrupt("outage of limit %q: is no name, or there are more than %d",
				check.Clip(one.GetLimit()), MaxOutages)
		case o.From < last || o.To <= o.From || o.To > now:
			return frames.Corrupt("outage from %d to %d: after one until %d, now is %d", o.From, o.To, last, now)
		}
		b.Withhold(one.GetLimit(), o)
	}
	return nil
}

// Load takes back what Save gave. The error is a frames.ErrCorrupt.
func (b *Book) Load(saved *logv1.SnapshotShare, now bucket.Instant) error {
	id, err := checkID(saved)
	if err != nil {
		return frames.Corrupt("share of session %x: %v", saved.GetSession(), err)
	}
	e := &Entry{
		ID: id, heard: bucket.Instant(saved.GetHeard()), outlived: bucket.Instant(saved.GetOutlived()),
		earned: saved.GetEarned(), lapsed: saved.GetLapsed(),
	}
	if e.heard < 0 || e.heard > now || e.outlived < 0 || e.outlived > now ||
		e.earned < e.lapsed || e.lapsed < 0 || e.earned > int64(now) {
		return frames.Corrupt("share of session %x: heard of at %d, has earned %d of which %d lapsed by %d, now is %d",
			id.Session, e.heard, e.earned, e.lapsed, e.outlived, now)
	}
	for _, p := range saved.GetPromises() {
		last, next := e.newest(), Promise{p.GetVersion(), p.GetPpm()}
		wrong := len(e.promises) > 0 && (next.Version <= last.Version || next.PPM >= last.PPM)
		// Versions go on from whatever a session said that it holds; there are as many above
		// MaxVersion as below.
		if wrong || next.Version == 0 || next.Version > 2*MaxVersion || next.PPM < 0 || next.PPM > Whole {
			return frames.Corrupt("share of session %x: promise %d of %d ppm after %d of %d ppm",
				id.Session, next.Version, next.PPM, last.Version, last.PPM)
		}
		e.promises = append(e.promises, next)
	}
	sessions, promised := b.Sessions(id.Limit)
	switch {
	case len(e.promises) < 1 || len(e.promises) > maxPromises:
		return frames.Corrupt("share of session %x: %d promises, must be from 1 to %d",
			id.Session, len(e.promises), maxPromises)
	case b.table.Find(id) != nil || b.Len() >= MaxEntries || sessions >= MaxSessions:
		return frames.Corrupt("share of session %x: is there twice, or more than %d", id.Session, MaxEntries)
	case promised+e.largest() > Whole:
		return frames.Corrupt("shares of limit %q: more than all of it is promised", id.Limit)
	}
	b.add(e)
	return nil
}

// named is what both an operation and a snapshot say of an entry.
type named interface {
	GetLimit() string
	GetSession() []byte
	GetOwner() string
}

// checkID says whether an entry can be kept under what it is called. The error is a
// *check.FieldError.
func checkID(of named) (ID, error) {
	session := of.GetSession()
	switch {
	case !lineage.IsName(of.GetLimit()):
		return ID{}, wrong("limit", "%q: is no name of a limit", check.Clip(of.GetLimit()))
	case len(session) != len(record.SessionID{}) || record.SessionID(session) == record.SessionID{}:
		return ID{}, wrong("session", "%d bytes: must be %d, not all of them zero", len(session), len(record.SessionID{}))
	}
	if err := check.Text("owner", of.GetOwner(), 0, check.MaxText); err != nil {
		return ID{}, err
	}
	return ID{Limit: of.GetLimit(), Session: record.SessionID(session), Owner: of.GetOwner()}, nil
}
