package cluster

import (
	"testing"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/events"
	"github.com/quorlease/quorlease/fsm/effect"
)

func TestEffectsBecomeEvents(t *testing.T) {
	t.Parallel()
	n := &Node{announced: map[string]bool{}}
	node := &logv1.NodeRecord{RaftId: "n1.0a", Name: "n1", Peer: "127.0.0.1:7201"}
	for _, c := range []struct {
		name   string
		effect effect.Effect
		want   events.Event
		ok     bool
	}{
		{
			"a_limit",
			effect.Effect{Kind: effect.LimitChanged, Limit: "gpt"},
			events.Event{Kind: events.LimitChanged, Severity: events.Info, Limit: "gpt", Text: "limit gpt was changed"},
			true,
		},
		{
			"by_hand",
			effect.Effect{
				Kind: effect.Adjusted, Limit: "gpt", Key: "a", Dimension: "requests", Value: "+5",
				Client: "operator", Text: "a test run",
			},
			events.Event{
				Kind: events.LimitAdjusted, Severity: events.Warning, Limit: "gpt", Value: "+5",
				Text: `requests of key "a" of limit gpt: +5, by "operator": a test run`,
			},
			true,
		},
		{
			"A23_usage_beyond_the_debt_allowed",
			effect.Effect{
				Kind: effect.DebtWrittenOff, Limit: "gpt", Key: "a", Dimension: "tokens", Value: "7", Client: "c1", Text: "why",
			},
			events.Event{
				Kind: events.DebtWrittenOff, Severity: events.Warning, Limit: "gpt", Value: "7", Client: "c1",
				Text: `tokens of key "a" of limit gpt: why`,
			},
			true,
		},
		{
			"a_node_the_first_time",
			effect.Effect{Kind: effect.NodeSet, Node: node},
			events.Event{
				Kind: events.MemberAdded, Severity: events.Info, Value: "n1", Text: "n1 (n1.0a) at 127.0.0.1:7201",
			},
			true,
		},
		{
			"a_node_that_is_removed",
			effect.Effect{Kind: effect.NodeRemoved, Node: node},
			events.Event{
				Kind: events.MemberRemoved, Severity: events.Warning, Value: "n1", Text: "n1 (n1.0a) at 127.0.0.1:7201",
			},
			true,
		},
		{
			"a_node_of_which_only_the_id_is_known",
			effect.Effect{Kind: effect.NodeRemoved, Node: &logv1.NodeRecord{RaftId: "n2.0b"}},
			events.Event{Kind: events.MemberRemoved, Severity: events.Warning, Value: "n2", Text: "n2 (n2.0b)"},
			true,
		},
		{"an_ended_lease_is_no_event", effect.Effect{Kind: effect.LeaseEnded}, events.Event{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := n.eventOf(c.effect)
			if ok != c.ok || got != c.want {
				t.Errorf("event of %+v:\ngot  %+v, %v\nwant %+v, %v", c.effect, got, ok, c.want, c.ok)
			}
		})
	}
}
