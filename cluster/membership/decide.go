package membership

import (
	"errors"
	"fmt"
)

// Why a change is not made. Each says that nothing was changed.
var (
	// ErrUnknown: there is no member of this name.
	ErrUnknown = errors.New("no such member")
	// ErrNotReady: the node has to get further first; waiting helps.
	ErrNotReady = errors.New("not ready")
	// ErrBusy: another change is under way.
	ErrBusy = errors.New("another change of the members is under way")
	// ErrRefused: the cluster would be worse off, or it makes no sense.
	ErrRefused = errors.New("refused")
)

// Verb is what an operator asks for.
type Verb int

// The verbs.
const (
	Add Verb = iota + 1
	Remove
	Promote
	Demote
	Transfer
)

// Request is one wish of an operator.
type Request struct {
	Verb Verb
	// Name is the node's, without incarnation; empty for Transfer means any voter.
	Name string
	// Address is the peer address of the node to Add.
	Address string
	// Found is who answers there, for Add.
	Found Candidate
}

// Candidate is a node that was asked at its address.
type Candidate struct {
	RaftID, Name string
	// Address is the one that it advertises.
	Address string
	// WasMember: by what it has applied it was a member of this cluster. A log without
	// that is what is left of an attempt to add it that did not commit.
	WasMember bool
}

// Action is what to do to raft.
type Action int

// The actions.
const (
	// Nothing: it is so already.
	Nothing Action = iota
	// AddLearner adds a member without a vote.
	AddLearner
	// Move gives a member another address.
	Move
	// GiveVote makes a voter of a learner.
	GiveVote
	// TakeVote makes a learner of a voter.
	TakeVote
	// TakeOut removes a member.
	TakeOut
	// HandOver makes another voter the leader. Where it was not what was asked for,
	// the new leader is to be asked again.
	HandOver
)

// Step is one action and the member it is about.
type Step struct {
	Action          Action
	RaftID, Address string
}

func step(a Action, m Member) Step { return Step{a, m.RaftID, m.Address} }

// Decide returns the step that brings the cluster nearer to what was asked for, or
// why there is none: an error that wraps one of those above.
func Decide(v View, r Request) (Step, error) {
	if v.Pending {
		return Step{}, ErrBusy
	}
	if r.Verb == Add {
		return add(v, r)
	}
	m, known := v.find(r.Name)
	switch {
	case r.Verb == Transfer && r.Name == "":
		return hand(v)
	case !known:
		return Step{}, fmt.Errorf("%w: %s", ErrUnknown, r.Name)
	}
	switch r.Verb {
	case Remove:
		return remove(v, m)
	case Promote:
		return promote(v, m)
	case Demote:
		return demote(v, m)
	case Transfer:
		return transfer(v, m)
	case Add:
	}
	return Step{}, refuse("verb %d is none", r.Verb)
}

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrRefused}, args...)...)
}

// add lets a node in, without a vote (R31), or follows a member to another address.
// A data directory that lost its state has lost its votes too, so its name stays
// taken until somebody removes it (R37); one that was a member may have voted, and must
// not come back as what it was (R33).
func add(v View, r Request) (Step, error) {
	found := r.Found
	switch {
	case found.Name != r.Name:
		return Step{}, refuse("the node at %s is called %s, not %s", r.Address, found.Name, r.Name)
	case found.Address != r.Address:
		return Step{}, refuse("%s advertises %s, not %s: add it there, or start it with --advertise-peer %s",
			r.Name, found.Address, r.Address, r.Address)
	}
	for _, m := range v.Members {
		if m.Address == r.Address && m.Name != r.Name {
			return Step{}, refuse("%s has the address %s; remove it first", m.Name, r.Address)
		}
	}
	m, known := v.find(r.Name)
	switch {
	case known && m.RaftID != found.RaftID:
		return Step{}, refuse("%s is a member with another data directory; remove it first", r.Name)
	case known && m.Address == r.Address:
		return step(Nothing, m), nil
	case known:
		return Step{Move, m.RaftID, r.Address}, nil
	case found.WasMember:
		return Step{}, refuse("%s was a member with its data directory, and was removed; "+
			"empty the directory and start %s again", found.RaftID, r.Name)
	case len(v.Members) >= MembersMost:
		return Step{}, refuse("there are %d members, at most %d", len(v.Members), MembersMost)
	}
	return Step{AddLearner, found.RaftID, r.Address}, nil
}

// promote gives a learner a vote once it can use it: a voter that lags widens the
// majority without being of any use to it (R31).
func promote(v View, m Member) (Step, error) {
	if m.Voter {
		return step(Nothing, m), nil
	}
	if !m.healthy() {
		return Step{}, fmt.Errorf("%w: %s", ErrNotReady, m.ails())
	}
	if m.Steady < SteadyLeast {
		return Step{}, fmt.Errorf("%w: %s has kept up for %.1f s, %.0f s are needed",
			ErrNotReady, m.Name, m.Steady.Seconds(), SteadyLeast.Seconds())
	}
	all, healthy, ailing := v.voters(m.RaftID)
	if need := majority(all + 1); healthy+1 < need {
		return Step{}, short("with", m, count{all + 1, need, healthy + 1}, ailing)
	}
	return step(GiveVote, m), nil
}

func demote(v View, m Member) (Step, error) {
	if !m.Voter {
		return step(Nothing, m), nil
	}
	return withdraw(v, m, TakeVote)
}

func remove(v View, m Member) (Step, error) {
	if !m.Voter {
		return step(TakeOut, m), nil
	}
	return withdraw(v, m, TakeOut)
}

// withdraw takes a voter from the voters. Raft would stop a leader that does that to
// itself in the middle of everything, so it hands over first (R33).
func withdraw(v View, m Member, a Action) (Step, error) {
	all, healthy, ailing := v.voters(m.RaftID)
	switch need := majority(all); {
	case all == 0:
		return Step{}, refuse("%s is the only voter", m.Name)
	case healthy < need:
		return Step{}, short("without", m, count{all, need, healthy}, ailing)
	case m.RaftID == v.Leader:
		return hand(v)
	}
	return step(a, m), nil
}

// count is how many voters there would be, are needed, and are healthy.
type count struct{ voters, needed, healthy int }

// short refuses a change that leaves too few healthy voters.
func short(with string, m Member, c count, ailing []string) error {
	text := fmt.Sprintf("%s the vote of %s there are %d voters, of which %d are needed and %d healthy",
		with, m.Name, c.voters, c.needed, c.healthy)
	return refuse("%s", because(text, ailing))
}

// hand makes the best other voter the leader.
func hand(v View) (Step, error) {
	m, ok := v.successor()
	if !ok {
		_, _, ailing := v.voters(v.Leader)
		return Step{}, refuse("%s", because("no other voter can lead", ailing))
	}
	return step(HandOver, m), nil
}

func transfer(v View, m Member) (Step, error) {
	switch {
	case m.RaftID == v.Leader:
		return step(Nothing, m), nil
	case !m.Voter:
		return Step{}, refuse("%s is a learner: only a voter can lead", m.Name)
	case !m.healthy():
		return Step{}, refuse("%s", m.ails())
	}
	return step(HandOver, m), nil
}

func majority(voters int) int { return voters/2 + 1 }

// String names the action for logs.
func (a Action) String() string {
	switch a {
	case AddLearner:
		return "add learner"
	case Move:
		return "move"
	case GiveVote:
		return "promote"
	case TakeVote:
		return "demote"
	case TakeOut:
		return "remove"
	case HandOver:
		return "hand over"
	case Nothing:
	}
	return "nothing"
}
