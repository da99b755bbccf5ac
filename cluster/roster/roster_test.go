package roster

import (
	"testing"

	"github.com/hashicorp/raft"
	"go.uber.org/goleak"

	"github.com/quorlease/quorlease/cluster/identity"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func configuration(voters, learners string) (c raft.Configuration) {
	for i, names := range []string{voters, learners} {
		for _, name := range names {
			id := string(name) + ".00000001"
			c.Servers = append(c.Servers, raft.Server{
				Suffrage: []raft.ServerSuffrage{raft.Voter, raft.Nonvoter}[i],
				ID:       raft.ServerID(id), Address: raft.ServerAddress(string(name) + ":1"),
			})
		}
	}
	return c
}

// Who serves, learners too, is what was applied last (G12), whatever comes late.
func TestG12Serving(t *testing.T) {
	t.Parallel()
	r := New(func() []identity.Member { return nil })
	if n := r.Serving("a.00000001"); n != 0 {
		t.Errorf("%d serve before there is a cluster", n)
	}
	r.Store(7, configuration("abc", "d"))
	r.Store(1, configuration("abc", ""))
	voters, learners := r.Count()
	if n := r.Serving("a.00000001"); n != 4 || voters != 3 || learners != 1 {
		t.Errorf("%d serve, %d vote and %d learn, want 4, 3 and 1", n, voters, learners)
	}
	if n := r.Serving("d.00000001"); n != 4 {
		t.Errorf("%d serve by a learner, want 4", n)
	}
	if n := r.Serving("a.00000002"); n != 0 {
		t.Errorf("%d serve by one that is no member, want 0", n)
	}
	r.Store(9, configuration("bc", "d"))
	if n := r.Serving("a.00000001"); n != 0 {
		t.Errorf("%d serve by one that was removed, want 0", n)
	}
}

func TestS1WhoMaySpeak(t *testing.T) {
	t.Parallel()
	var promised []identity.Member
	r := New(func() []identity.Member { return promised })
	if r.IsMember("a.00000001") || !r.Joins("x.00000001") {
		t.Error("a node without a cluster takes a stranger for a member, or waits for none")
	}
	promised = []identity.Member{{RaftID: "a.00000001"}}
	if !r.IsMember("a.00000001") || r.IsMember("b.00000001") || r.Joins("x.00000001") {
		t.Error("a node that has promised to form a cluster: want the others of the promise, and nobody else")
	}
	promised = nil
	r.vouch([]string{"b.00000001"})
	if !r.IsMember("b.00000001") || r.IsMember("a.00000001") {
		t.Error("want those for whom members vouch, and nobody else")
	}
	r.vouch(nil)
	if r.IsMember("b.00000001") {
		t.Error("vouched for no more, and still a member")
	}
	r.Store(3, configuration("x", ""))
	if r.Joins("x.00000001") || !r.Joins("y.00000001") {
		t.Error("x is a member and y is none")
	}
}
