package notice_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quorlease/quorlease/cluster/events"
	"github.com/quorlease/quorlease/cluster/notice"
	"github.com/quorlease/quorlease/fsm/effect"
)

func TestWarnings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		effect effect.Effect
		want   events.Event
	}{
		"would_be_refused": {
			effect.Effect{
				Kind: effect.LimitWarning, Limit: "gpt", Key: "eu", Dimension: "requests", Client: "gw", Value: "REASON_RATE",
			},
			events.Event{
				Kind: events.LimitWarning, Severity: events.Warning, Limit: "gpt", Client: "gw", Value: "RATE",
				Text: `requests of key "eu" of limit gpt would be refused if it were enforced: RATE, by "gw"`,
			},
		},
		"no_room_for_a_key": {
			effect.Effect{Kind: effect.LimitWarning, Limit: "gpt", Key: "eu", Value: "REASON_KEY_LIMIT"},
			events.Event{
				Kind: events.LimitWarning, Severity: events.Warning, Limit: "gpt", Value: "KEY_LIMIT",
				Text: `key "eu" of limit gpt would be refused if it were enforced: KEY_LIMIT`,
			},
		},
		"a_part_of_a_quota": {
			effect.Effect{
				Kind: effect.QuotaWarning, Limit: "spend", Key: "a", Dimension: "tokens", Client: "gw", Value: "8050",
				Text: "81 of 100 are used",
			},
			events.Event{
				Kind: events.QuotaWarning, Severity: events.Warning, Limit: "spend", Client: "gw", Value: "80.5%",
				Text: `tokens of key "a" of limit spend: 80.5% of the quota is used, 81 of 100 are used`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := notice.Effect(c.effect)
			if diff := cmp.Diff(c.want, got); !ok || diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestWarningsAreRare: one a minute for each limit, also by a clock that is put back.
func TestWarningsAreRare(t *testing.T) {
	t.Parallel()
	var r notice.Rarely
	start := time.Unix(1_700_000_000, 0)
	for i, step := range []struct {
		limit string
		after time.Duration
		want  bool
	}{
		{"a", 0, true},
		{"a", time.Second, false},
		{"b", time.Second, true},
		{"a", 59 * time.Second, false},
		{"a", time.Minute, true},
		{"a", time.Minute + time.Second, false},
		{"a", -time.Hour, true},
		{"a", 0, true},
	} {
		if got := r.Due(step.limit, start.Add(step.after)); got != step.want {
			t.Errorf("%d: %s after %v: %v, want %v", i, step.limit, step.after, got, step.want)
		}
	}
	r.Forget("a")
	if !r.Due("a", start) {
		t.Error("a limit that came back is not warned of")
	}
}
