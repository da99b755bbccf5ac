package state

import (
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
)

func (r *restoring) addReport(saved *logv1.SnapshotReport) error {
	count := saved.GetCount()
	if len(saved.GetSession()) != len(SessionID{}) {
		return corrupt("report of a session id of %d bytes", len(saved.GetSession()))
	}
	for _, err := range []error{
		CheckCount(count),
		CheckText("owner", saved.GetOwner(), 0, MaxText),
		CheckText("client", saved.GetClient(), 0, MaxText),
	} {
		if err != nil {
			return corrupt("report of session %x: %v", saved.GetSession(), err)
		}
	}
	at, forget := bucket.Instant(saved.GetAt()), bucket.Instant(saved.GetForgetAt())
	if at < 0 || at > r.Now || forget < at || forget > LastInstant+ReportLife {
		return corrupt("report of session %x: made at %d, to be forgotten at %d, now is %d",
			saved.GetSession(), at, forget, r.Now)
	}
	one := &Report{
		ID: ReportID{
			Session: SessionID(saved.GetSession()), Owner: saved.GetOwner(),
			Limit: count.GetLimit(), Key: count.GetKey(),
			Dimension: count.GetDimension(), Class: count.GetClass(),
		},
		Client: saved.GetClient(), Tokens: count.GetTokens(), At: at, ForgetAt: forget,
	}
	if r.reports.Find(one.ID) != nil || r.reports.Len() >= MaxReports {
		return corrupt("report of session %x: is there twice, or more than %d", saved.GetSession(), MaxReports)
	}
	r.reports.Insert(one)
	r.dueReports.Set(one, int64(forget))
	r.touchReport(one)
	return nil
}
