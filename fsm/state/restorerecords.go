package state

import (
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/frames"
	"github.com/quorlease/quorlease/fsm/record"
)

func (r *restoring) addLease(saved *logv1.SnapshotLease) error {
	l, err := record.LoadLease(saved, r.shared)
	switch {
	case err != nil:
		return err
	case r.FindLease(l.ID) != nil || int64(r.leases.Len()) >= r.Caps.GetLeases():
		return frames.Corrupt("lease %x: is there twice, or more than %d", l.ID, r.Caps.GetLeases())
	case l.Open() && l.Session != (record.SessionID{}) && r.FindSession(l.SessionKey()) == nil:
		return frames.Corrupt("lease %x: of session %x, which there is not", l.ID, l.Session)
	case l.Open() && !r.hasKeys(&l):
		return frames.Corrupt("lease %x: is open, and a key of it is gone", l.ID)
	}
	r.AddLease(l)
	return nil
}

// hasKeys says that all keys of a lease are there: while it is open none is dropped.
// One that came later would count a lease less than none at its end.
func (r *restoring) hasKeys(l *record.Lease) bool {
	for i := range l.Charges {
		if _, k := r.KeyOf(&l.Charges[i]); k == nil && l.Charges[i].LimitID != 0 {
			return false
		}
	}
	return true
}

func (r *restoring) addReport(saved *logv1.SnapshotReport) error {
	one, err := record.LoadReport(saved, r.Now)
	switch {
	case err != nil:
		return err
	case r.reports.Find(one.ID) != nil || r.reports.Len() >= MaxReports:
		return frames.Corrupt("report of session %x: is there twice, or more than %d", one.ID.Session, MaxReports)
	}
	kept := &Report{Report: one}
	r.reports.Insert(kept)
	r.dueReports.Set(kept, int64(kept.ForgetAt))
	r.touchReport(kept)
	return nil
}
