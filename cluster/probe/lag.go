package probe

import "time"

const (
	// lagMost is the number of entries from which a member lags.
	lagMost = 250
	// lagPatience is how long a member that answers may lag before it is
	// reported (R13).
	lagPatience = 10 * time.Second
)

// lagging follows one member, seen from the leader.
type lagging struct {
	since    time.Duration
	behind   bool
	reported bool
}

// observe returns FollowerLagging once for each time the member stays behind, and
// FollowerCaughtUp once it does not any more. Zero is no change.
func (l *lagging) observe(now time.Duration, lag uint64) ChangeKind {
	if lag < lagMost {
		return l.forget()
	}
	if !l.behind {
		l.behind, l.since = true, now
	}
	if l.reported || now-l.since <= lagPatience {
		return 0
	}
	l.reported = true
	return FollowerLagging
}

// forget ends what was reported: the member caught up, or somebody else watches
// it from now on.
func (l *lagging) forget() ChangeKind {
	reported := l.reported
	*l = lagging{}
	if reported {
		return FollowerCaughtUp
	}
	return 0
}
