package roster

import (
	"context"
	"errors"
	"strings"
	"testing"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	peerv1 "github.com/quorlease/quorlease/api/quorlease/peer/v1"
	"github.com/quorlease/quorlease/cluster/identity"
	"github.com/quorlease/quorlease/cluster/membership"
	"github.com/quorlease/quorlease/cluster/wire"
)

// A node that was removed with most of those who voted with it learns of it from any that
// has gone on without it, and from none that may only be behind (R33).
func TestR33RemovedWithMostOfTheOthers(t *testing.T) {
	t.Parallel()
	all, rest := []string{"a.00000001", "b.00000001", "c.00000001"}, []string{"a.00000001"}
	said := func(cluster string, applied uint64, known []string) *peerv1.PeerInfo {
		return &peerv1.PeerInfo{
			RaftId: "a.00000001", ClusterId: cluster, HasState: true, AppliedIndex: applied, Known: known,
		}
	}
	for _, row := range []struct {
		name string
		info *peerv1.PeerInfo
		want bool
	}{
		{"gone_on_without_it", said("ours", 8, rest), true},
		{"behind", said("ours", 7, rest), false},
		{"gone_on_with_it", said("ours", 8, all), false},
		{"another_cluster", said("other", 8, rest), false},
		{"no_member_itself", said("ours", 8, []string{"b.00000001"}), false},
		{"nobody_answers", nil, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			r := New(func() []identity.Member { return nil })
			r.Store(7, configuration("abc", ""))
			k := NewKeeper(KeeperConfig{
				Roster: r, Record: func() *logv1.NodeRecord { return &logv1.NodeRecord{RaftId: "c.00000001"} },
				Identity: func() identity.Record { return identity.Record{ClusterID: "ours"} },
				Outside: func(context.Context, string) (*peerv1.PeerInfo, error) {
					if row.info == nil {
						return nil, errors.New("connection refused")
					}
					return row.info, nil
				},
			})
			if got := k.outlived(t.Context(), []string{"a:1", "b:1"}); got != row.want {
				t.Errorf("removed: %t, want %t", got, row.want)
			}
		})
	}
}

// Only a cluster that lacks a majority of its old voters is asked: one refusal among
// those who can be reached, and the rest is away.
func TestR33RefusalsAreCounted(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name            string
		unknown, asked  int
		without, refuse bool
	}{
		{"most_say_so", 2, 0, false, true},
		{"one_says_so_and_shows_it", 1, 1, true, true},
		{"one_says_so", 1, 2, false, false},
		{"nobody_says_so", 0, 0, true, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			r := New(func() []identity.Member { return nil })
			r.Store(7, configuration("abc", ""))
			asked := 0
			k := NewKeeper(KeeperConfig{
				Roster: r, Record: func() *logv1.NodeRecord { return &logv1.NodeRecord{RaftId: "c.00000001"} },
				Identity: func() identity.Record { return identity.Record{ClusterID: "ours"} },
				Survey:   func(context.Context, []string) wire.Survey { return wire.Survey{Unknown: row.unknown} },
				Outside: func(context.Context, string) (*peerv1.PeerInfo, error) {
					asked++
					known := []string{"a.00000001", "c.00000001"}
					if row.without {
						known = known[:1]
					}
					return &peerv1.PeerInfo{
						RaftId: "a.00000001", ClusterId: "ours", HasState: true, AppliedIndex: 9, Known: known,
					}, nil
				},
			})
			if got := k.disowned(t.Context(), []string{"a:1", "b:1"}); got != row.refuse || asked != row.asked {
				t.Errorf("refused: %t, %d asked, want %t and %d", got, asked, row.refuse, row.asked)
			}
		})
	}
}

// Who is to be added is who it says it is, and of no other cluster (S1, R36).
func TestS1Candidates(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name    string
		info    *peerv1.PeerInfo
		problem string
	}{
		{"new", &peerv1.PeerInfo{RaftId: "d.00000004", Name: "d", Peer: "d:1"}, ""},
		{"of_the_cluster", &peerv1.PeerInfo{RaftId: "d.00000004", Name: "d", Peer: "d:1", ClusterId: "ours"}, ""},
		{
			"of_another_cluster", &peerv1.PeerInfo{RaftId: "d.00000004", Name: "d", Peer: "d:1", ClusterId: "other"},
			"belongs to another cluster, other",
		},
		{
			"with_a_member's_id", &peerv1.PeerInfo{RaftId: "a.00000001", Name: "d", Peer: "d:1"},
			`called "d" and has the id "a.00000001"`,
		},
		{"with_no_id", &peerv1.PeerInfo{RaftId: "d", Name: "d", Peer: "d:1"}, `has the id "d"`},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			c := NewChanger(ChangerConfig{
				Cluster: func() string { return "ours" },
				Outside: func(context.Context, string) (*peerv1.PeerInfo, error) { return row.info, nil },
			})
			_, err := c.candidate(t.Context(), membership.Request{Verb: membership.Add, Name: "d", Address: "d:1"})
			switch {
			case row.problem == "" && err != nil:
				t.Error(err)
			case row.problem != "" && (!errors.Is(err, membership.ErrRefused) || !strings.Contains(err.Error(), row.problem)):
				t.Errorf("%v, want %q", err, row.problem)
			}
		})
	}
}
