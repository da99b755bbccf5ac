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

// observe returns true once for each time the member stays behind.
func (l *lagging) observe(now time.Duration, lag uint64) bool {
	if lag < lagMost {
		*l = lagging{}
		return false
	}
	if !l.behind {
		l.behind, l.since = true, now
	}
	if l.reported || now-l.since <= lagPatience {
		return false
	}
	l.reported = true
	return true
}
