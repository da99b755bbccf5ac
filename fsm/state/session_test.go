package state

import (
	"errors"
	"testing"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/check"
	"github.com/quorlease/quorlease/fsm/digest"
	"github.com/quorlease/quorlease/fsm/frames"
	"github.com/quorlease/quorlease/fsm/record"
)

// TestG9EveryFieldOfASessionCounts changes one field after another.
func TestG9EveryFieldOfASessionCounts(t *testing.T) {
	t.Parallel()
	t.Run("G9", func(t *testing.T) {
		t.Parallel()
		seen := make(map[uint64]int)
		for i, change := range []func(*record.Session){
			func(*record.Session) {},
			func(s *record.Session) { s.ID[3] = 1 },
			func(s *record.Session) { s.Owner = "x" },
			func(s *record.Session) { s.Connection = 1 },
			func(s *record.Session) { s.Ends = 1 },
		} {
			s := &record.Session{}
			change(s)
			if other, there := seen[s.Sum()]; there {
				t.Errorf("changes %d and %d have the same digest", other, i)
			}
			seen[s.Sum()] = i
		}
	})
}

// TestG9WhatFewKeysHaveCounts does the same for what few keys have.
func TestG9WhatFewKeysHaveCounts(t *testing.T) {
	t.Parallel()
	t.Run("G9", func(t *testing.T) {
		t.Parallel()
		seen := make(map[uint64]int)
		for i, one := range []*rare{
			nil,
			{maker: "a"},
			{maker: "b"},
			{warned: []uint64{1}},
			{warned: []uint64{2}},
			{warned: []uint64{1, 2}},
			{maker: "a", warned: []uint64{1}},
		} {
			sum := digest.New(tagKey)
			one.digest(&sum)
			if other, there := seen[sum.Value()]; there {
				t.Errorf("%d and %d have the same digest", other, i)
			}
			seen[sum.Value()] = i
			if one == nil {
				continue
			}
			if c := one.clone(); len(c.warned) > 0 && &c.warned[0] == &one.warned[0] {
				t.Errorf("%d: the clone shares its list", i)
			}
		}
	})
}

// TestSavedSessionsThatAreWrong: none of these can have been saved.
func TestSavedSessionsThatAreWrong(t *testing.T) {
	t.Parallel()
	good := func() *logv1.SnapshotSession {
		return &logv1.SnapshotSession{Session: make([]byte, 16), Owner: "o", Connection: 1}
	}
	for name, change := range map[string]func(*logv1.SnapshotSession){
		"twice":           func(*logv1.SnapshotSession) {},
		"short id":        func(s *logv1.SnapshotSession) { s.Session = s.GetSession()[1:] },
		"owner":           func(s *logv1.SnapshotSession) { s.Owner = "\x00" },
		"ends before all": func(s *logv1.SnapshotSession) { s.Ends = -1 },
		"never ends": func(s *logv1.SnapshotSession) {
			s.Ends = int64(check.LastInstant+bucket.Instant(check.MaxGrace)) + 1
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &restoring{State: New(), shared: make(record.Names)}
			if err := r.addSession(good()); err != nil {
				t.Fatal(err)
			}
			bad := good()
			change(bad)
			if err := r.addSession(bad); !errors.Is(err, frames.ErrCorrupt) {
				t.Errorf("%v: %v, want %v", bad, err, frames.ErrCorrupt)
			}
			if err := r.checkSessions(); !errors.Is(err, frames.ErrCorrupt) {
				t.Errorf("a session without leases: %v, want %v", err, frames.ErrCorrupt)
			}
			if err := r.addLease(savedOpen("stranger")); !errors.Is(err, frames.ErrCorrupt) {
				t.Errorf("a lease of another session: %v, want %v", err, frames.ErrCorrupt)
			}
		})
	}
}

// savedOpen is an open lease of a session of its owner.
func savedOpen(owner string) *logv1.SnapshotLease {
	session := make([]byte, 16)
	session[0] = 1
	return &logv1.SnapshotLease{
		Id: make([]byte, 16), Owner: owner, State: logv1.LeaseState_LEASE_STATE_OPEN, Session: session,
		Charges: []*logv1.SnapshotCharge{{LimitName: "l", DimensionName: "slots", Amount: 1}},
	}
}

// TestSavedLeasesWithoutTheirKeys: an open lease keeps its keys, a limit or key that is
// not there was never charged.
func TestSavedLeasesWithoutTheirKeys(t *testing.T) {
	t.Parallel()
	r := &restoring{State: New(), shared: make(record.Names)}
	saved := savedOpen("o")
	saved.Session, saved.Charges[0].Limit = nil, 7
	if err := r.addLease(saved); !errors.Is(err, frames.ErrCorrupt) {
		t.Errorf("an open lease of limit 7: %v, want %v", err, frames.ErrCorrupt)
	}
	saved.State, saved.ForgetAt = logv1.LeaseState_LEASE_STATE_SETTLED, 1
	if err := r.addLease(saved); err != nil {
		t.Errorf("one that has ended: %v", err)
	}
}

// TestSavedChargesThatAreWrong: a charge that was refused took nothing.
func TestSavedChargesThatAreWrong(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*logv1.SnapshotLease){
		"refused and charged": func(l *logv1.SnapshotLease) { l.Charges[0].Refused, l.Charges[0].Limit = true, 1 },
		"session of 15 bytes": func(l *logv1.SnapshotLease) { l.Session = l.GetSession()[1:] },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			saved := savedOpen("o")
			if _, err := record.LoadLease(saved, make(record.Names)); err != nil {
				t.Fatal(err)
			}
			change(saved)
			if _, err := record.LoadLease(saved, make(record.Names)); !errors.Is(err, frames.ErrCorrupt) {
				t.Errorf("%v: %v, want %v", saved, err, frames.ErrCorrupt)
			}
		})
	}
}
