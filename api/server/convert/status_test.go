package convert_test

import (
	"testing"

	"github.com/quorlease/quorlease/api/server/convert"
	"github.com/quorlease/quorlease/cluster"
)

// TestStatusAnswer: how far a node is behind is said where it answers, also where that is
// not at all.
func TestStatusAnswer(t *testing.T) {
	t.Parallel()
	nodes := convert.StatusAnswer(cluster.Status{Nodes: []cluster.NodeStatus{
		{Name: "n1", Answers: true}, {Name: "n2", Answers: true, Lag: 260}, {Name: "n3", Lag: 7},
	}}).GetNodes()
	for i, want := range []uint64{0, 260} {
		if nodes[i].Lag == nil || nodes[i].GetLag() != want {
			t.Errorf("%v, want %d entries behind", nodes[i], want)
		}
	}
	if nodes[2].Lag != nil {
		t.Errorf("%v does not answer, and is %d entries behind", nodes[2], nodes[2].GetLag())
	}
}
