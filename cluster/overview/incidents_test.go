package overview_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/events"
	"github.com/quorlease/quorlease/cluster/overview"
)

// happen tells a book of an event.
func happen(b *overview.Book, kind events.Kind, severity events.Severity, client, limit string) {
	b.Happened(events.Event{
		Kind: kind, Severity: severity, Client: client, Limit: limit, Value: "k", Time: noon,
	}, client)
}

// firing are the kinds of what is open.
func firing(b *overview.Book) (kinds []events.Kind) {
	for _, one := range b.View(noon).Firing {
		kinds = append(kinds, one.Kind)
	}
	return kinds
}

// TestIncidents: which kinds begin and end one another.
func TestIncidents(t *testing.T) {
	t.Parallel()
	const info, warning, critical = events.Info, events.Warning, events.Critical
	type step struct {
		kind          events.Kind
		severity      events.Severity
		client, limit string
		open          int
	}
	for name, steps := range map[string][]step{
		"a_quorum":   {{events.QuorumLost, critical, "", "", 1}, {events.QuorumRestored, info, "", "", 0}},
		"a_disk":     {{events.DiskLow, critical, "", "", 1}, {events.DiskLow, info, "", "", 0}},
		"a_follower": {{events.FollowerLagging, warning, "", "", 1}, {events.FollowerLagging, info, "", "", 0}},
		"a_stall":    {{events.DiskStalled, critical, "", "", 1}},
		"only_told":  {{events.LimitChanged, info, "", "l", 0}, {events.ClockSkew, warning, "", "", 0}},
		"a_pause":    {{events.LimitPaused, info, "c", "gpt", 0}},
		"said_twice": {{events.DiskLow, critical, "", "", 1}, {events.DiskLow, critical, "", "", 1}},
		"clients": {
			{events.ClientOverBudget, warning, "a", "", 1},
			{events.ClientOverBudget, warning, "b", "", 2},
			{events.ClientOverBudget, info, "a", "", 1},
		},
		"a_client_both_ways": {
			{events.ClientRetryWarning, warning, "a", "", 1},
			{events.ClientOverBudget, warning, "a", "", 2},
			{events.ClientOverBudget, info, "b", "", 2},
			{events.ClientOverBudget, info, "a", "", 1},
			{events.ClientRetryWarning, info, "a", "", 0},
		},
		"a_key_that_is_cleared": {
			{events.LimitBlocked, warning, "c", "gpt", 1},
			{events.SpendCapReached, critical, "c", "gpt", 1},
			{events.LimitCleared, info, "ann", "free", 1},
			{events.LimitCleared, info, "ann", "gpt", 0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := book()
			for i, s := range steps {
				happen(b, s.kind, s.severity, s.client, s.limit)
				if v := b.View(noon); len(v.Firing) != s.open || v.FiringTotal != s.open {
					t.Fatalf("after step %d: %d open of %d, want %d", i, len(v.Firing), v.FiringTotal, s.open)
				}
			}
		})
	}
	t.Run("the_worst_first", func(t *testing.T) {
		t.Parallel()
		b := book()
		happen(b, events.ClientOverBudget, warning, "a", "")
		happen(b, events.QuorumLost, critical, "", "")
		if kinds := firing(b); kinds[0] != events.QuorumLost {
			t.Errorf("%v", kinds)
		}
	})
	t.Run("a_limit_that_is_deleted", func(t *testing.T) {
		t.Parallel()
		b := book()
		happen(b, events.SpendCapReached, critical, "c", "gpt")
		b.Configure([]*logv1.Limit{{Name: "free"}})
		if kinds := firing(b); len(kinds) != 0 {
			t.Errorf("%v of a limit that there is no more", kinds)
		}
	})
}

// TestAlertsAreCounted: however many begin and end in whatever order, the number is
// that of those that are open.
func TestAlertsAreCounted(t *testing.T) {
	t.Parallel()
	t.Run("S1-40", func(t *testing.T) {
		t.Parallel()
		b, open, random := book(), map[string]bool{}, rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test's choice
		for step := range 20_000 {
			client := fmt.Sprintf("client-%d", random.IntN(3000))
			kind := []events.Kind{events.ClientRetryWarning, events.ClientOverBudget}[random.IntN(2)]
			// Rather more begin than end, so that there are more than are told apart.
			severity := []events.Severity{events.Warning, events.Warning, events.Info}[random.IntN(3)]
			happen(b, kind, severity, client, "")
			if id := string(kind) + client; severity == events.Warning {
				open[id] = true
			} else {
				delete(open, id)
			}
			if step%1000 != 999 {
				continue
			}
			if v := b.View(noon); v.RetryAlerts != len(open) || v.FiringTotal != len(open) {
				t.Fatalf("%d of %d alerts, want %d", v.RetryAlerts, v.FiringTotal, len(open))
			}
		}
	})
}

// TestGoneLimits: what was about a limit is over when there is no such limit any more,
// also where it was only counted.
func TestGoneLimits(t *testing.T) {
	t.Parallel()
	b := book()
	for i := range 1500 {
		b.Happened(events.Event{
			Kind: events.LimitBlocked, Severity: events.Critical, Limit: "gone", Value: fmt.Sprintf("key-%d", i),
		}, "")
	}
	for i := range 3 {
		happen(b, events.ClientOverBudget, events.Warning, fmt.Sprintf("client-%d", i), "")
	}
	if v := b.View(noon); v.FiringTotal != 1503 || v.RetryAlerts != 3 {
		t.Fatalf("%d open, %d of retries", v.FiringTotal, v.RetryAlerts)
	}
	b.Configure([]*logv1.Limit{{Name: "gpt"}})
	if v := b.View(noon); v.FiringTotal != 3 || v.RetryAlerts != 3 {
		t.Errorf("%d open, %d of retries, want those of three clients", v.FiringTotal, v.RetryAlerts)
	}
}

// TestChanged: whoever waits hears of an event at once, and of nothing else.
func TestChanged(t *testing.T) {
	t.Parallel()
	b := book()
	version := b.Version()
	changed := b.Changed(version)
	b.Decided(noon, work("gpt", "k", 1), granted(0), time.Millisecond)
	select {
	case <-changed:
		t.Error("a decision is worth a picture")
	default:
	}
	happen(b, events.LeaderChanged, events.Info, "", "")
	select {
	case <-changed:
	default:
		t.Error("an event is not heard of")
	}
	select {
	case <-b.Changed(version):
	default:
		t.Error("who asks late does not hear of it")
	}
}
