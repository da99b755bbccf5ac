package failopen

import "time"

// Signal is what one call, or one probe, found out about the authority.
type Signal int

// The signals.
const (
	// Answered is any answer in time: a grant, a denial, a refusal of bad input.
	Answered Signal = iota
	// Slow is a deadline that passed without an answer.
	Slow
	// NoLeader is a node that says that no leader is known: an election.
	NoLeader
	// NoQuorum is a node that says that a majority is out of reach.
	NoQuorum
	// Unreachable is that no node could be reached at all.
	Unreachable
)

// String is the signal in lower case.
func (s Signal) String() string {
	return name(int(s), "answered", "slow", "no leader", "no quorum", "unreachable")
}

// State is how a client stands with the authority.
type State int

// The states. Away and Recovering are the ones in which callers are not made to
// wait: see Machine.Away.
const (
	// Healthy is that the last answer came in time.
	Healthy State = iota
	// Doubtful is that something was missed since, too little to act on.
	Doubtful
	// Away is that nobody answers.
	Away
	// Recovering is Away with the last few answers in time.
	Recovering
)

// String is the state in lower case.
func (s State) String() string { return name(int(s), "healthy", "doubtful", "away", "recovering") }

// Change is what one observation changed.
type Change int

// The changes. Started and Ended alternate, Started first: one of each an
// incident.
const (
	None Change = iota
	Started
	Ended
)

// String is the change in lower case.
func (c Change) String() string { return name(int(c), "none", "started", "ended") }

func name(i int, names ...string) string {
	if i < 0 || i >= len(names) {
		return "unknown"
	}
	return names[i]
}

// What it takes to enter and to leave, with slack on both sides, so that an
// authority that is slow at times does not make a client flap (A20).
const (
	// enterMisses is how many misses in a row are enough, whatever they are.
	enterMisses = 3
	// enterAfter is how long nothing but misses is enough, where one of them at
	// its beginning was no mere slowness.
	enterAfter = time.Second
	// electionMax is how long elections are waited for. An ordinary one takes less
	// (G8: it alerts nobody).
	electionMax = 3 * time.Second
	// silenceMax is how far apart two observations may be for the time between
	// them to count: two elections on an idle day are not one that lasted a day.
	silenceMax = 3 * time.Second
	// leaveGood is how many answers in a row end an incident.
	leaveGood = 5
)

// row is the observations since the last good answer, or, while away, since the
// last bad one. The zero row is Healthy. It has no lock.
type row struct {
	state        State
	misses, good int
	// counted is when the last miss was counted.
	counted moment
	// lost is since when a miss said that the authority is gone, leaderless since
	// when a node said that it has no leader. Silence clears both.
	lost, leaderless moment
	last             time.Duration
}

// moment is a time that may be missing.
type moment struct {
	at  time.Duration
	set bool
}

func (m *moment) begin(at time.Duration) {
	if !m.set {
		*m = moment{at, true}
	}
}

// lasted says whether d has passed since the moment.
func (m *moment) lasted(d, at time.Duration) bool { return m.set && at-m.at >= d }

func (r *row) away() bool { return r.state == Away || r.state == Recovering }

// observe takes one observation into account. at is the time since some fixed
// moment, began that at which its call began; they may step back a little, as
// observers overtake one another.
func (r *row) observe(began, at time.Duration, s Signal) Change {
	switch {
	case r.away() && s == Answered:
		return r.recover()
	case r.away():
		*r = row{state: Away}
		return None
	case s == Answered:
		*r = row{}
		return None
	}
	if r.state == Doubtful && at-r.last > silenceMax {
		r.lost, r.leaderless = moment{}, moment{}
	}
	r.last = at
	r.state = Doubtful
	if r.missed(began, at, s) {
		*r = row{state: Away}
		return Started
	}
	return None
}

func (r *row) recover() Change {
	r.state = Recovering
	r.good++
	if r.good < leaveGood {
		return None
	}
	*r = row{}
	return Ended
}

// missed counts a bad observation and says whether it is one too many.
//
// While nodes say that they elect a leader, what is slow is the election's
// doing: neither is a miss until it has lasted, and then there has been nothing
// but misses for longer than is needed.
//
// Slow calls that waited side by side waited for one and the same thing: a
// hundred callers whose authority pauses once have seen one miss.
func (r *row) missed(began, at time.Duration, s Signal) bool {
	switch s {
	case NoLeader:
		r.leaderless.begin(at)
	case NoQuorum, Unreachable:
		r.lost.begin(at)
	case Answered, Slow:
	}
	if s == NoLeader || s == Slow && r.leaderless.set {
		return r.leaderless.lasted(electionMax, at)
	}
	if s == Slow && began < at && r.counted.set && began < r.counted.at {
		return r.lost.lasted(enterAfter, at)
	}
	r.counted = moment{at, true}
	r.misses++
	return r.misses >= enterMisses || r.lost.lasted(enterAfter, at)
}
