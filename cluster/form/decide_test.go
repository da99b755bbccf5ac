package form

import (
	"strings"
	"testing"

	"go.uber.org/goleak"

	peerv1 "github.com/quorlease/quorlease/api/quorlease/peer/v1"
	"github.com/quorlease/quorlease/cluster/identity"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	clusterX = "0123456789abcdef0123456789abcdef"
	clusterY = "fedcba9876543210fedcba9876543210"
	n1       = "n1.11111111"
	n2       = "n2.22222222"
	n3       = "n3.33333333"
	n4       = "n4.44444444"
)

// peer is an empty node that forms three and knows all of them.
func peer(id string, change ...func(*peerv1.PeerInfo)) *peerv1.PeerInfo {
	p := &peerv1.PeerInfo{
		RaftId: id, Name: identity.NameOf(id), Peer: addrOf(id), BootstrapExpect: 3, Known: []string{n1, n2, n3},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

func addrOf(id string) string { return identity.NameOf(id) + ":7201" }

// formed is a member of a cluster that exists.
func formed(clusterID string, known ...string) func(*peerv1.PeerInfo) {
	return func(p *peerv1.PeerInfo) { p.HasState, p.ClusterId, p.Known = true, clusterID, known }
}

func applied(index uint64) func(*peerv1.PeerInfo) {
	return func(p *peerv1.PeerInfo) { p.AppliedIndex = index }
}

func promised(clusterID string) func(*peerv1.PeerInfo) {
	return func(p *peerv1.PeerInfo) { p.ClusterId = clusterID }
}

func knows(ids ...string) func(*peerv1.PeerInfo) { return func(p *peerv1.PeerInfo) { p.Known = ids } }

func expects(n uint32) func(*peerv1.PeerInfo) {
	return func(p *peerv1.PeerInfo) { p.BootstrapExpect = n }
}

func three() []identity.Member {
	return []identity.Member{
		{RaftID: n1, Peer: addrOf(n1)}, {RaftID: n2, Peer: addrOf(n2)}, {RaftID: n3, Peer: addrOf(n3)},
	}
}

// empty is a node that belongs to nothing and forms three.
func empty(id string) self {
	name := identity.NameOf(id)
	return self{
		record: identity.Record{Name: name, Incarnation: strings.TrimPrefix(id, name+".")},
		peer:   addrOf(id), expect: 3,
	}
}

func joins(id string) self {
	s := alone(empty(id), 0)
	s.learner = true
	return s
}

func has(id, clusterID string, members []identity.Member) self {
	s := empty(id)
	s.record.ClusterID, s.record.Members = clusterID, members
	return s
}

func withState(s self) self {
	s.hasState = true
	return s
}

func wasFormed(s self) self {
	s.record.Formed = true
	return s
}

func alone(s self, expect int) self {
	s.expect = expect
	return s
}

var decisions = []struct {
	name string
	self self
	seen []*peerv1.PeerInfo
	want action
	// reason is part of the reason wanted.
	reason string
}{
	{"one_needs_nobody", alone(empty(n1), 1), nil, bootstrap, ""},
	{"nobody_yet", empty(n1), nil, wait, "1 of 3 nodes found"},
	{"two_of_three", empty(n1), []*peerv1.PeerInfo{peer(n2)}, wait, "2 of 3 nodes found"},
	{"all_and_smallest", empty(n1), []*peerv1.PeerInfo{peer(n2), peer(n3)}, bootstrap, ""},
	{"all_and_not_smallest", empty(n2), []*peerv1.PeerInfo{peer(n1), peer(n3)}, wait, n1 + " has to plan"},
	{
		"not_everybody_knows_everybody", empty(n1),
		[]*peerv1.PeerInfo{peer(n2), peer(n3, knows(n1, n3))},
		wait, n3 + " does not know " + n2,
	},
	{
		"more_than_expected", empty(n1),
		[]*peerv1.PeerInfo{peer(n2), peer(n3), peer(n4)},
		refuse, "4 nodes",
	},
	{
		"another_number", empty(n1),
		[]*peerv1.PeerInfo{peer(n2, expects(5))},
		refuse, "--bootstrap-expect 5, this node with 3",
	},
	{"a_peer_that_only_joins", empty(n1), []*peerv1.PeerInfo{peer(n2, expects(0))}, wait, "without --bootstrap-expect"},
	{"a_name_twice", empty(n1), []*peerv1.PeerInfo{peer(n2), peer("n2.99999999")}, refuse, "share a name"},
	{
		"promised_elsewhere", empty(n1),
		[]*peerv1.PeerInfo{peer(n2, promised(clusterX)), peer(n3)},
		wait, "planned cluster " + clusterX,
	},
	{
		"R36_hears_of_a_cluster_that_has_it", empty(n4),
		[]*peerv1.PeerInfo{peer(n1, formed(clusterX, n1, n4))},
		adopt, "",
	},
	{
		"R36_hears_of_a_cluster_that_does_not", empty(n4),
		[]*peerv1.PeerInfo{peer(n1, formed(clusterX, n1, n2, n3))},
		refuse, "n4 is not a member of it; add it first",
	},
	{
		"R37_known_under_another_incarnation", empty("n2.99999999"),
		[]*peerv1.PeerInfo{peer(n1, formed(clusterX, n1, n2, n3)), peer(n3, formed(clusterX, n1, n2, n3))},
		refuse, "n2 is a member of cluster " + clusterX + " with another data directory; remove it first",
	},
	{
		"a_learner_waits_to_be_added", joins(n4),
		[]*peerv1.PeerInfo{peer(n1, formed(clusterX, n1, n2, n3))},
		wait, "quorlease cluster add n4 n4:7201",
	},
	{
		"a_learner_that_was_added", joins(n4),
		[]*peerv1.PeerInfo{peer(n1, formed(clusterX, n1, n2, n3, n4))},
		adopt, "",
	},
	{
		"R37_a_learner_under_a_known_name", joins("n2.99999999"),
		[]*peerv1.PeerInfo{peer(n1, formed(clusterX, n1, n2, n3))},
		refuse, "remove it first",
	},
	{
		"R37_the_newest_answer_counts", joins("n2.99999999"),
		[]*peerv1.PeerInfo{peer(n1, formed(clusterX, n1, n2, n3)), peer(n3, formed(clusterX, n1, n3), applied(7))},
		wait, "quorlease cluster add n2",
	},
	{
		"R37_also_where_it_is_the_other_way_round", joins("n2.99999999"),
		[]*peerv1.PeerInfo{peer(n1, formed(clusterX, n1, n3)), peer(n3, formed(clusterX, n1, n2, n3), applied(7))},
		refuse, "remove it first",
	},
	{"R36_a_learner_forms_nothing", joins(n1), []*peerv1.PeerInfo{peer(n2), peer(n3)}, wait, "no cluster answers"},
	{
		"a_member_without_its_configuration_is_no_witness", empty(n4),
		[]*peerv1.PeerInfo{peer(n1, formed(clusterX)), peer(n2, formed(clusterX, n1, n2, n4))},
		adopt, "",
	},
	{"nor_alone", empty(n4), []*peerv1.PeerInfo{peer(n1, formed(clusterX))}, wait, "does not know its members"},
	{"only_joins_and_finds_nothing", alone(empty(n4), 0), []*peerv1.PeerInfo{peer(n1)}, wait, "no cluster answers"},
	{"planner_goes_on", has(n1, clusterX, three()), nil, bootstrap, ""},
	{
		"promised_waits_for_the_planner", has(n2, clusterX, three()),
		[]*peerv1.PeerInfo{peer(n1, promised(clusterX))},
		wait, n1,
	},
	{
		"promised_and_formed", has(n2, clusterX, three()),
		[]*peerv1.PeerInfo{peer(n1, formed(clusterX, n1, n2, n3))},
		adopt, "",
	},
	{
		"promised_and_another_cluster_formed", has(n2, clusterX, three()),
		[]*peerv1.PeerInfo{peer(n1, formed(clusterY, n1, n3, n4))},
		wait, n1,
	},
	{
		"R37_planner_lost_what_it_bootstrapped", has(n1, clusterX, three()),
		[]*peerv1.PeerInfo{peer(n2, formed(clusterX, n1, n2, n3))},
		refuse, "n1.11111111, which bootstrapped it, is gone",
	},
	{
		"R36_state_never_bootstraps", withState(has(n1, clusterX, three())),
		[]*peerv1.PeerInfo{peer(n2), peer(n3)},
		adopt, "",
	},
	{"joined_and_empty", has(n4, clusterX, nil), nil, adopt, ""},
	{"R37_formed_and_empty", wasFormed(has(n2, clusterX, three())), nil, refuse, "its Raft state is gone"},
	{"state_of_no_cluster", withState(empty(n1)), nil, refuse, "names no cluster"},
}

func TestDecide(t *testing.T) {
	t.Parallel()
	for _, c := range decisions {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := decide(c.self, c.seen)
			if got.action != c.want || !strings.Contains(got.reason, c.reason) {
				t.Errorf("got action %d, reason %q, want action %d, reason with %q", got.action, got.reason, c.want, c.reason)
			}
			if got.action == bootstrap && len(got.members) != c.self.expect {
				t.Errorf("plan has %d members, want %d", len(got.members), c.self.expect)
			}
		})
	}
}

func TestPlanDoesNotDependOnOrder(t *testing.T) {
	t.Parallel()
	a := decide(empty(n1), []*peerv1.PeerInfo{peer(n2), peer(n3)})
	b := decide(empty(n1), []*peerv1.PeerInfo{peer(n3), peer(n2)})
	if len(a.members) != 3 || a.members[0].RaftID != n1 || a.members[2].RaftID != n3 || a.members[1] != b.members[1] {
		t.Errorf("plans %v and %v, want the same, by Raft id", a.members, b.members)
	}
}
