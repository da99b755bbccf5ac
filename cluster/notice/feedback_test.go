package notice_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quorlease/quorlease/cluster/events"
	"github.com/quorlease/quorlease/cluster/notice"
	"github.com/quorlease/quorlease/fsm/effect"
)

func TestFeedback(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		effect effect.Effect
		want   events.Event
	}{
		{
			effect.Effect{
				Kind: effect.LimitPaused, Limit: "gpt", Key: "eu", Client: "gw-3", Text: "for 22s", Value: "slow_down",
			},
			events.Event{
				Kind: events.LimitPaused, Severity: events.Info, Limit: "gpt", Client: "gw-3", Value: "eu",
				Text: `key "eu" of limit gpt is paused: for 22s, by "gw-3"; the provider says "slow_down"`,
			},
		},
		{
			effect.Effect{Kind: effect.SpendCapReached, Limit: "gpt", Text: "no money is left", Value: "insufficient_quota"},
			events.Event{
				Kind: events.SpendCapReached, Severity: events.Critical, Limit: "gpt",
				Text: `key "" of limit gpt has reached its spend cap: no money is left; the provider says "insufficient_quota"`,
			},
		},
		{
			effect.Effect{Kind: effect.LimitCleared, Limit: "gpt", Key: "eu", Client: "ann", Text: "paid"},
			events.Event{
				Kind: events.LimitCleared, Severity: events.Info, Limit: "gpt", Client: "ann", Value: "eu",
				Text: `key "eu" of limit gpt is open again: paid, by "ann"`,
			},
		},
	} {
		t.Run(c.effect.Kind.String(), func(t *testing.T) {
			t.Parallel()
			got, ok := notice.Effect(c.effect)
			if diff := cmp.Diff(c.want, got); !ok || diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
	if _, ok := notice.Effect(effect.Effect{Kind: effect.LimitBlocked}); !ok {
		t.Error("nobody hears of a block")
	}
}
