package incident

import (
	"time"

	"github.com/quorlease/quorlease/client/failopen"
)

const (
	// quietMax is how long callers may be answered locally before anybody is told,
	// where nothing says that the quorum is lost: an election takes less, and pages
	// nobody (G8).
	quietMax = 3 * time.Second
	// lostFor is how long it has to be said that the quorum is lost, by every signal
	// that says something about it: on a machine that is short of processor time a
	// node may miss its peers for a moment.
	lostFor = 400 * time.Millisecond
)

// Tell is what is to be told of an incident.
type Tell int

// What is told: one Beginning and one End an incident, or nothing of it.
const (
	Nothing Tell = iota
	Beginning
	End
)

// Alarm decides when somebody is told of an incident. The zero value is ready. It
// has no lock: the owner orders what the machine said.
type Alarm struct {
	// open: the client is away, since then. raised: it was told, because of cause.
	open, raised bool
	since        time.Time
	cause        failopen.Signal
	// lost is since when every signal has said that the quorum is lost.
	lost time.Time
}

// Cause is the signal that made the alarm tell of the incident.
func (a *Alarm) Cause() failopen.Signal { return a.cause }

// Observe takes in a signal and what it changed.
func (a *Alarm) Observe(now time.Time, s failopen.Signal, change failopen.Change) Tell {
	lost := a.isLost(now, s)
	switch change {
	case failopen.Ended:
		raised := a.raised
		a.open, a.raised = false, false
		if raised {
			return End
		}
		return Nothing
	case failopen.Started:
		a.open, a.since = true, now
	case failopen.None:
	}
	if a.open && !a.raised && (lost || now.Sub(a.since) >= quietMax) {
		a.raised, a.cause = true, s
		return Beginning
	}
	return Nothing
}

// isLost says whether the signals have said for long enough that the quorum is
// lost: no election explains that. A slow call says nothing about it.
func (a *Alarm) isLost(now time.Time, s failopen.Signal) bool {
	switch s {
	case failopen.NoQuorum, failopen.Unreachable:
		if a.lost.IsZero() {
			a.lost = now
		}
		return now.Sub(a.lost) >= lostFor
	case failopen.Answered, failopen.NoLeader:
		a.lost = time.Time{}
	case failopen.Slow:
	}
	return false
}
