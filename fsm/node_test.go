package fsm_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/effect"
)

// Whoever comes or goes is named by the effect with the whole record, also where
// the operation that removes it has no more than the id.
func TestEffectsNameTheNode(t *testing.T) {
	t.Parallel()
	node := &logv1.NodeRecord{RaftId: "n1.0a", Name: "n1", Peer: "127.0.0.1:7201"}
	m := fsm.New()
	for i, step := range []struct {
		op   *logv1.SetNode
		kind effect.Kind
	}{
		{&logv1.SetNode{Node: node}, effect.NodeSet},
		{&logv1.SetNode{Node: &logv1.NodeRecord{RaftId: "n1.0a"}, Remove: true}, effect.NodeRemoved},
	} {
		_, effects := m.Apply(uint64(i+1), &logv1.Entry{Operations: []*logv1.Operation{
			{Kind: &logv1.Operation_SetNode{SetNode: step.op}},
		}})
		if len(effects) != 1 || effects[0].Kind != step.kind || !proto.Equal(effects[0].Node, node) {
			t.Errorf("%v gave %+v, want one %v of %v", step.op, effects, step.kind, node)
		}
	}
}
