package grow

import (
	"strings"
	"testing"
	"time"

	"github.com/quorlease/quorlease/bench"
	"github.com/quorlease/quorlease/cluster/disk"
)

// TestScaleUpAndLoseTwo is the shortest way to see that a cluster that has grown from
// three to five can lose two of the three at once: service goes on, nothing that was
// acknowledged is lost or was granted twice (G1, G4), and no two changes of the members
// were under way at a time (R31). It takes as long as a learner must keep up for.
func TestScaleUpAndLoseTwo(t *testing.T) {
	t.Parallel()
	t.Run("G1_G4_R31", func(t *testing.T) {
		t.Parallel()
		binary, err := bench.BuildBinary(t.Context(), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		nodes, err := bench.StartNodes(bench.NodesConfig{Binary: binary, Dir: t.TempDir(), Count: 3, Spare: 2, Args: Args()})
		if err != nil {
			t.Fatal(err)
		}
		defer nodes.Close()
		result, err := LoseTwo(t.Context(), Config{Nodes: nodes, Seed: 1, Pace: 100 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%+v", *result)
		// The first, two that came and two that got a vote.
		if result.Configurations != 5 || result.Leases < 100 || result.Debits == 0 {
			t.Errorf("%+v: something was not looked at", *result)
		}
	})
}

// A log in which two changes were made at once is found out.
func TestR31StepsAreChecked(t *testing.T) {
	t.Parallel()
	a := disk.Member{RaftID: "a.1", Address: "a:1", Voter: true}
	b := disk.Member{RaftID: "b.1", Address: "b:1", Voter: true}
	learner, moved := b, b
	learner.Voter, moved.Address = false, "x:1"
	for _, c := range []struct {
		name          string
		before, after []disk.Member
		want          string
	}{
		{"comes", []disk.Member{a}, []disk.Member{a, learner}, ""},
		{"gets_a_vote", []disk.Member{a, learner}, []disk.Member{a, b}, ""},
		{"moves", []disk.Member{a, b}, []disk.Member{a, moved}, ""},
		{"goes", []disk.Member{a, b}, []disk.Member{a}, ""},
		{"nothing", []disk.Member{a, b}, []disk.Member{b, a}, "0 changes"},
		{"comes_with_a_vote", []disk.Member{a}, []disk.Member{a, b}, "2 changes at once: +b.1, vote b.1"},
		{"one_for_another", []disk.Member{a}, []disk.Member{learner}, "2 changes at once: +b.1, -a.1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := steps{1: c.before, 5: c.after}.check()
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
