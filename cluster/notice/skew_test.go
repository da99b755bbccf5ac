package notice_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quorlease/quorlease/cluster/calendar"
	"github.com/quorlease/quorlease/cluster/events"
	"github.com/quorlease/quorlease/cluster/notice"
)

func TestSkew(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		by          time.Duration
		value, text string
	}{
		{
			6500*time.Millisecond + 1, "6.5s",
			"the wall clock of n2 is 6.5s ahead of the others; calendar windows go by the middle one",
		},
		{
			-time.Minute, "-1m0s",
			"the wall clock of n2 is 1m0s behind the others; calendar windows go by the middle one",
		},
	} {
		want := events.Event{
			Kind: events.ClockSkew, Severity: events.Warning, Node: "n2", Value: test.value, Text: test.text,
		}
		if diff := cmp.Diff(want, notice.Skew(calendar.Skew{Node: "n2", By: test.by})); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
}
