package probe

import (
	"slices"
	"time"
)

// State is what a node can say of the quorum.
type State int

// The states, from worst to best.
const (
	// NoQuorum: nobody within reach reaches a majority of the voters.
	NoQuorum State = iota
	// NoLeader: a majority is there but has no leader: an election.
	NoLeader
	// HasLeader: a majority is there and has a leader.
	HasLeader
)

// String names the state for people.
func (s State) String() string {
	switch s {
	case NoQuorum:
		return "no quorum"
	case NoLeader:
		return "no leader"
	case HasLeader:
		return "has leader"
	}
	return "unknown"
}

// answer is what a peer said last, and when, on the prober's clock.
type answer struct {
	at time.Duration
	// reached are the Raft ids that the peer reaches.
	reached []string
}

// facts are all that the decision looks at.
type facts struct {
	self   string
	voters []string
	// answers by Raft id.
	answers map[string]answer
	// leader that Raft knows, empty where there is none, and when Raft last had
	// proof of it: for a leader of itself, now.
	leader   string
	leaderAt time.Duration
	// majorityAt is when a majority was last within reach.
	majorityAt time.Duration
}

// reached are the voters that this node reaches, itself included.
func (f *facts) reached(now, window time.Duration) []string {
	var ids []string
	for _, v := range f.voters {
		if v == f.self || f.isFresh(now, window, v) {
			ids = append(ids, v)
		}
	}
	return ids
}

func (f *facts) isFresh(now, window time.Duration, id string) bool {
	a, ok := f.answers[id]
	return ok && now-a.at <= window
}

// reach is the largest number of voters that anybody within reach reaches, this
// node included: a node that sees a corner of the cluster learns from its
// neighbours that the rest is well.
func (f *facts) reach(now, window time.Duration) int {
	most := len(f.reached(now, window))
	for id, a := range f.answers {
		if id == f.self || now-a.at > window {
			continue
		}
		n := 0
		for _, v := range f.voters {
			if slices.Contains(a.reached, v) {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

func (f *facts) hasMajority(now, window time.Duration) bool {
	return len(f.voters) > 0 && f.reach(now, window) > len(f.voters)/2
}

// decide says how the quorum stands. An answer counts for window.
//
// Raft's own proof of a leader stands in for probes that are missing: on a
// machine that is short of processor time probes die before heartbeats do, and
// nobody should be called for that. It doesn't where the leader itself answers
// that it reaches too few, and a leader that reaches too few itself has two
// windows to step down in.
func (f *facts) decide(now, window time.Duration) State {
	if f.hasMajority(now, window) {
		if f.leader != "" {
			return HasLeader
		}
		return NoLeader
	}
	switch {
	case f.leader == "" || now-f.leaderAt > window:
		return NoQuorum
	case f.leader == f.self:
		if now-f.majorityAt <= 2*window {
			return HasLeader
		}
	case !f.isFresh(now, window, f.leader):
		return HasLeader
	}
	return NoQuorum
}

// incident turns a sequence of states into one report when a quorum is lost and
// one when it is back.
type incident struct {
	// seen: there was a leader since the start.
	seen bool
	// open: lost was reported and restored was not.
	open bool
	// without: no leader, since when.
	without bool
	since   time.Duration
	// gone: no majority either, since when.
	gone      bool
	goneSince time.Duration
}

// goneFor is how long a majority has to be out of reach, which is to say at two
// looks: where processor time is short a node misses its peers for an instant, and
// nobody is called for that.
const goneFor = 100 * time.Millisecond

// outcome of an observation.
type outcome int

const (
	nothing outcome = iota
	lost
	restored
)

// observe takes the state at now; a majority that is out of reach counts as a loss
// after a moment, an election when it lasts longer than patience.
func (i *incident) observe(now time.Duration, s State, patience time.Duration) outcome {
	if s == HasLeader {
		wasOpen := i.open
		i.seen, i.open, i.without, i.gone = true, false, false, false
		if wasOpen {
			return restored
		}
		return nothing
	}
	if !i.without {
		i.without, i.since = true, now
	}
	switch {
	case s != NoQuorum:
		i.gone = false
	case !i.gone:
		i.gone, i.goneSince = true, now
	}
	lasts := now-i.since > patience || i.gone && now-i.goneSince >= goneFor
	if !i.seen || i.open || !lasts {
		return nothing
	}
	i.open = true
	return lost
}

// restart forgets the time without a leader so far: this node was not running.
func (i *incident) restart(now time.Duration) {
	if i.without {
		i.since = now
	}
	if i.gone {
		i.goneSince = now
	}
}
