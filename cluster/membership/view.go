package membership

import (
	"fmt"
	"strings"
	"time"
)

const (
	// LagMost is the number of entries from which a member is too far behind.
	LagMost = 250
	// SteadyLeast is how long a learner must have been caught up, without a break,
	// before it gets a vote.
	SteadyLeast = 10 * time.Second
	// MembersMost bounds the members: as many have room in the replicated state.
	MembersMost = 64
)

// Member is one member as the leader sees it.
type Member struct {
	// RaftID is Name, a dot and the incarnation.
	RaftID, Name string
	// Address is where raft reaches it.
	Address string
	Voter   bool
	// Answers: it answers probes.
	Answers bool
	// Lag is how many entries it is behind the leader.
	Lag uint64
	// Steady is for how long it has answered and been fewer than LagMost entries
	// behind, without a break.
	Steady time.Duration
}

// healthy members count for a majority.
func (m Member) healthy() bool { return m.Answers && m.Lag < LagMost }

// ails says what keeps a member from being healthy.
func (m Member) ails() string {
	switch {
	case !m.Answers:
		return m.Name + " does not answer"
	case m.Lag >= LagMost:
		return fmt.Sprintf("%s is %d entries behind, fewer than %d are needed", m.Name, m.Lag, LagMost)
	}
	return ""
}

// View is the cluster as its leader sees it.
type View struct {
	// Leader is the Raft id of the node that decides.
	Leader  string
	Members []Member
	// Pending: the newest configuration has not committed yet.
	Pending bool
}

// find returns the member of a name; ok is false where there is none.
func (v View) find(name string) (m Member, ok bool) {
	for _, m := range v.Members {
		if m.Name == name {
			return m, true
		}
	}
	return Member{}, false
}

// voters counts the voters, those that are healthy, and says what ails the others.
// The member with the Raft id but is left out.
func (v View) voters(but string) (all, healthy int, ailing []string) {
	for _, m := range v.Members {
		switch {
		case !m.Voter || m.RaftID == but:
			continue
		case m.healthy() || m.RaftID == v.Leader:
			healthy++
		default:
			ailing = append(ailing, m.ails())
		}
		all++
	}
	return all, healthy, ailing
}

// successor is the healthy voter that is least behind, but for the leader.
func (v View) successor() (best Member, ok bool) {
	for _, m := range v.Members {
		if !m.Voter || m.RaftID == v.Leader || !m.healthy() {
			continue
		}
		if !ok || m.Lag < best.Lag {
			best, ok = m, true
		}
	}
	return best, ok
}

// because adds reasons to a text.
func because(text string, reasons []string) string {
	if len(reasons) == 0 {
		return text
	}
	return text + ": " + strings.Join(reasons, ", ")
}
