package roster

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"github.com/quorlease/quorlease/cluster/identity"
)

// Member is one member of a configuration.
type Member struct {
	// RaftID is Name, a dot and the incarnation.
	RaftID, Name string
	// Address is where raft reaches it.
	Address string
	Voter   bool
}

// Roster is who is a member, as this node knows. It is safe for concurrent use.
type Roster struct {
	// promised are the members of the cluster that this node has promised to form.
	promised func() []identity.Member
	raft     atomic.Pointer[raft.Raft]

	mu sync.RWMutex
	// applied is the newest configuration that this node has applied, and index that
	// of its entry. raft does not tell of what it has committed.
	applied []Member
	index   uint64
	// vouched are Raft ids that members of this node's cluster call members, while
	// this node has yet to read so in its own log.
	vouched []string
}

// New returns a roster without members. promised says who belongs to a cluster that
// is about to be formed.
func New(promised func() []identity.Member) *Roster { return &Roster{promised: promised} }

// Attach tells of raft as soon as it is there.
func (r *Roster) Attach(library *raft.Raft) { r.raft.Store(library) }

// Attached reports whether raft is there.
func (r *Roster) Attached() bool { return r.raft.Load() != nil }

// Store notes a configuration that this node has applied, from the log or from a
// snapshot, and returns the members of before. An older one than it knows changes nothing,
// and returns none.
func (r *Roster) Store(index uint64, c raft.Configuration) (before []Member) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if index <= r.index {
		return nil
	}
	before, r.applied, r.index = r.applied, membersOf(c), index
	return before
}

func membersOf(c raft.Configuration) []Member {
	members := make([]Member, len(c.Servers))
	for i, s := range c.Servers {
		members[i] = Member{
			RaftID: string(s.ID), Name: identity.NameOf(string(s.ID)), Address: string(s.Address),
			Voter: s.Suffrage == raft.Voter,
		}
	}
	return members
}

// Latest are the members of the newest configuration, by which raft goes before it
// has committed. None before there is one.
func (r *Roster) Latest() []Member {
	library := r.raft.Load()
	if library == nil {
		return nil
	}
	return membersOf(library.GetConfiguration().Configuration())
}

// Applied are the members of the newest configuration that this node has applied;
// before it has applied any, those of the newest. The caller must not change them.
func (r *Roster) Applied() []Member {
	if applied, _ := r.certain(); len(applied) > 0 {
		return applied
	}
	return r.Latest()
}

func (r *Roster) certain() ([]Member, uint64) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.applied, r.index
}

// IsMember reports whether a Raft id may speak to this node: it belongs to the
// newest configuration, or while this node has none, to those who form one; or a
// member has vouched for it.
func (r *Roster) IsMember(raftID string) bool {
	members := r.Latest()
	if has(members, raftID) {
		return true
	}
	if len(members) == 0 && slices.ContainsFunc(r.promised(), func(m identity.Member) bool { return m.RaftID == raftID }) {
		return true
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Contains(r.vouched, raftID)
}

// Joins reports whether a node has yet to find its cluster, or to read in its log that it
// is a member. One that has promised to form a cluster waits for no other.
func (r *Roster) Joins(self string) bool {
	if len(r.promised()) > 0 && len(r.Latest()) == 0 {
		return false
	}
	return !has(r.Applied(), self)
}

// vouch notes whom members call members, in place of whom they did before.
func (r *Roster) vouch(ids []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.vouched = ids
}

// At is the Raft id of the member that must answer at an address, empty where none
// is known: an address that another node now has must not be taken for it (R35).
func (r *Roster) At(address string) string {
	for _, m := range r.Latest() {
		if m.Address == address {
			return m.RaftID
		}
	}
	return ""
}

// Serving is the number of members, learners too, by what this node has applied; 0
// while it is none of them. One that was just started may know of the past only, so
// the newest configuration counts where it has more: each has a smaller part then.
func (r *Roster) Serving(self string) int {
	if members := r.Applied(); has(members, self) {
		return max(len(members), len(r.Latest()))
	}
	return 0
}

// Count is how many voters and learners there are by what this node has applied.
func (r *Roster) Count() (voters, learners int) {
	members := r.Applied()
	for _, m := range members {
		if m.Voter {
			voters++
		}
	}
	return voters, len(members) - voters
}

func has(members []Member, raftID string) bool {
	return slices.ContainsFunc(members, func(m Member) bool { return m.RaftID == raftID })
}
