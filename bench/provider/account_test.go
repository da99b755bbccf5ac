package provider_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quorlease/quorlease/bench/provider"
)

func TestFailuresCount(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		// counted says whether refusals count, and admitted how many of two calls a
		// second, for a minute after the burst, get in at one a second.
		counted  bool
		admitted int
	}{{"counted", true, 0}, {"not_counted", false, 60}} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			model := provider.NewBuckets(provider.Limits{Requests: 60}, provider.Options{FailuresCount: row.counted})
			for range 61 {
				model.Ask(0, provider.Call{})
			}
			admitted := 0
			for half := 1; half <= 120; half++ {
				if model.Ask(time.Duration(half)*time.Second/2, provider.Call{}).OK {
					admitted++
				}
			}
			if admitted != row.admitted {
				t.Errorf("%d admitted, want %d", admitted, row.admitted)
			}
			// Whoever waits as long as he was told gets in.
			refused := model.Ask(60*time.Second, provider.Call{})
			if refused.OK || refused.RetryAfter != time.Second {
				t.Errorf("%+v, want a wait of 1 s", refused)
			}
			if !model.Ask(60*time.Second+refused.RetryAfter, provider.Call{}).OK {
				t.Error("refused after the wait")
			}
		})
	}
}

func TestSettle(t *testing.T) {
	t.Parallel()
	model := provider.NewBuckets(provider.Limits{Input: 600, Output: 600}, provider.Options{})
	if !model.Ask(0, provider.Call{Input: 600, Output: 0}).OK {
		t.Fatal("a full bucket refused")
	}
	t.Run("what_was_not_used_comes_back", func(t *testing.T) {
		model.Settle(0, provider.Call{Input: -100, Output: 700})
		state := model.State(0)
		want := provider.State{
			Limits:    provider.Limits{Input: 600, Output: 600},
			Remaining: provider.Remaining{Requests: -1, Input: 100, Output: 0},
			FullInput: 50 * time.Second, FullOutput: 70 * time.Second,
		}
		if diff := cmp.Diff(want, state); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
	t.Run("debt_is_waited_for", func(t *testing.T) {
		answer := model.Ask(0, provider.Call{Input: 1})
		want := provider.Answer{
			RetryAfter: 10 * time.Second, Binding: provider.OutputTokens,
			Remaining: provider.Remaining{Requests: -1, Input: 100},
		}
		if diff := cmp.Diff(want, answer); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if !model.Ask(10*time.Second, provider.Call{Input: 1}).OK {
			t.Error("refused when the debt was paid")
		}
	})
	t.Run("nothing_above_full", func(t *testing.T) {
		model.Settle(20*time.Minute, provider.Call{Input: -1000, Output: -1000})
		if left := model.State(20 * time.Minute).Remaining; left.Input != 600 || left.Output != 600 {
			t.Errorf("left %+v, want 600 and 600", left)
		}
	})
}

func TestAcceleration(t *testing.T) {
	t.Parallel()
	// ask counts how many calls of 100,000 input tokens, a tenth of a million, were
	// refused when minute n asks for so many.
	refused := func(calls func(minute int) int) (n int) {
		account := provider.NewAccount(provider.Rules{Growth: provider.Growth{Above: 1_000_000}})
		for minute := range 120 {
			for range calls(minute) {
				answer := account.Ask(time.Duration(minute)*time.Minute, provider.Call{Input: 100_000})
				if answer.OK {
					continue
				}
				n++
				if answer.Reason != provider.SlowDown || answer.RetryAfter != time.Minute {
					t.Fatalf("minute %d: %+v, want slow_down until the next minute", minute, answer)
				}
			}
		}
		return n
	}
	if n := refused(func(int) int { return 10 }); n != 0 {
		t.Errorf("%d refused of what never grew", n)
	}
	// 10 calls, then half as many again each quarter of an hour.
	if n := refused(func(minute int) int {
		calls := 10
		for range minute / 15 {
			calls += calls / 2
		}
		return calls
	}); n != 0 {
		t.Errorf("%d refused of what grew by half", n)
	}
	// From 10 to 40 at once: 30 minutes of 30, 25 and so on.
	if n := refused(func(minute int) int {
		if minute < 30 {
			return 10
		}
		return 40
	}); n != 15*25+15*18+15*7 {
		t.Errorf("%d refused of what grew four times at once, want %d", n, 15*25+15*18+15*7)
	}
	// A pause of half an hour is forgotten.
	if n := refused(func(minute int) int {
		switch {
		case minute < 15:
			return 10
		case minute < 30:
			return 15
		case minute == 90:
			return 11
		default:
			return 0
		}
	}); n != 1 {
		t.Errorf("%d refused after an hour of silence, want 1", n)
	}
}

func TestAccount(t *testing.T) {
	t.Parallel()
	limits := provider.Limits{Requests: 120, Input: 6000}
	minute := provider.Rules{Limits: limits, FixedMinute: true, Window: 10 * time.Second}
	t.Run("requests_by_ten_seconds", func(t *testing.T) {
		t.Parallel()
		account := provider.NewAccount(minute)
		for i := range 20 {
			if answer := account.Ask(second, provider.Call{Input: 1}); !answer.OK {
				t.Fatalf("call %d: %+v", i, answer)
			}
		}
		want := provider.Answer{
			RetryAfter: 9 * second, Binding: provider.Requests,
			Remaining: provider.Remaining{Requests: -1, Input: 5980, Output: -1},
		}
		if diff := cmp.Diff(want, account.Ask(second, provider.Call{Input: 1})); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		state := account.State(second)
		if state.Limits.Requests != 20 || state.Remaining.Requests != 0 || state.FullInput != 59*second {
			t.Errorf("state %+v, want 0 of 20 requests, and 59 s until full", state)
		}
		if !account.Ask(10*second, provider.Call{Input: 1}).OK {
			t.Error("refused in the next window")
		}
	})
	t.Run("lowered_for_a_while", func(t *testing.T) {
		t.Parallel()
		rules := minute
		rules.Lowered = &provider.Lowered{Span: provider.Span{From: 10 * second, Until: 2 * time.Minute}, Input: 100}
		account := provider.NewAccount(rules)
		for _, row := range []struct {
			at          time.Duration
			ok          bool
			limit, left int64
		}{
			{0, true, 6000, 5800},
			{10 * second, false, 100, 0},
			{time.Minute, false, 100, 100},
			{2 * time.Minute, true, 6000, 5800},
		} {
			answer := account.Ask(row.at, provider.Call{Input: 200})
			state := account.State(row.at)
			if answer.OK != row.ok || state.Limits.Input != row.limit || state.Remaining.Input != row.left {
				t.Errorf("at %v: %+v, %+v, want %+v", row.at, answer, state, row)
			}
		}
	})
	t.Run("concurrent", func(t *testing.T) {
		t.Parallel()
		account := provider.NewAccount(provider.Rules{Limits: limits, Concurrent: 2})
		account.Ask(0, provider.Call{})
		account.Ask(0, provider.Call{})
		if answer := account.Ask(0, provider.Call{}); answer.OK || answer.Reason != provider.Concurrent {
			t.Errorf("the third: %+v", answer)
		}
		account.Done()
		if answer := account.Ask(0, provider.Call{}); !answer.OK {
			t.Errorf("after one was done: %+v", answer)
		}
	})
	t.Run("a_spend_cap_has_no_wait", func(t *testing.T) {
		t.Parallel()
		account := provider.NewAccount(provider.Rules{
			Limits: limits, SpendCap: &provider.Span{From: second, Until: time.Hour},
		})
		for _, row := range []struct {
			at time.Duration
			ok bool
		}{{0, true}, {second, false}, {time.Hour - 1, false}, {time.Hour, true}} {
			answer := account.Ask(row.at, provider.Call{Input: 1})
			if answer.OK != row.ok || answer.RetryAfter != 0 || !row.ok && answer.Reason != provider.SpendCap {
				t.Errorf("at %v: %+v", row.at, answer)
			}
		}
	})
}

func TestRulesAreChecked(t *testing.T) {
	t.Parallel()
	err := provider.Rules{
		Limits: provider.Limits{Requests: -1, Output: 1e9}, FixedMinute: true, Window: 7 * second,
		Lowered: &provider.Lowered{}, Concurrent: -1, Growth: provider.Growth{Above: -1},
		SpendCap: &provider.Span{From: 2, Until: 1},
	}.Check()
	want := []string{
		"limits.requests: -1", "limits.output: 1000000000", "concurrent: -1", "limits.input: 0", "window: 7s",
		"lowered: 0", "growth.above: -1", "spend cap: it ends at 1ns",
	}
	for _, part := range want {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not say %q", err, part)
		}
	}
	if err := (provider.Rules{}).Check(); err != nil {
		t.Errorf("the zero rules: %v", err)
	}
}
