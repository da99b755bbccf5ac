package record

import (
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/check"
	"github.com/quorlease/quorlease/fsm/frames"
)

// Save is the report for a snapshot.
func (r *Report) Save() *logv1.SnapshotReport {
	return &logv1.SnapshotReport{
		Session: r.ID.Session[:], Owner: r.ID.Owner, Client: r.Client, At: int64(r.At), ForgetAt: int64(r.ForgetAt),
		Settled: r.Settled,
		Count: &logv1.AdmittedCount{
			Limit: r.ID.Limit, Key: r.ID.Key, Dimension: r.ID.Dimension, Class: r.ID.Class, Tokens: r.Tokens,
		},
	}
}

// LoadReport makes a report of what Save made, and checks all that can be seen
// without other records. The error is a frames.ErrCorrupt.
func LoadReport(saved *logv1.SnapshotReport, now bucket.Instant) (Report, error) {
	count := saved.GetCount()
	if len(saved.GetSession()) != len(SessionID{}) {
		return Report{}, frames.Corrupt("report of a session id of %d bytes", len(saved.GetSession()))
	}
	for _, err := range []error{
		check.Count(count),
		check.Text("owner", saved.GetOwner(), 0, check.MaxText),
		check.Text("client", saved.GetClient(), 0, check.MaxText),
	} {
		if err != nil {
			return Report{}, frames.Corrupt("report of session %x: %v", saved.GetSession(), err)
		}
	}
	at, forget := bucket.Instant(saved.GetAt()), bucket.Instant(saved.GetForgetAt())
	settled := saved.GetSettled()
	if settled < 0 || settled > int64(now) || at < 0 || at > now || forget < at || forget > check.LastInstant+ReportLife {
		return Report{}, frames.Corrupt("report of session %x: made at %d, to be forgotten at %d, now is %d",
			saved.GetSession(), at, forget, now)
	}
	return Report{
		ID: ReportID{
			Session: SessionID(saved.GetSession()), Owner: saved.GetOwner(),
			Limit: count.GetLimit(), Key: count.GetKey(),
			Dimension: count.GetDimension(), Class: count.GetClass(),
		},
		Client: saved.GetClient(), Tokens: count.GetTokens(), Settled: saved.GetSettled(), At: at, ForgetAt: forget,
	}, nil
}
