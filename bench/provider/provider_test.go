package provider_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quorlease/quorlease/bench/provider"
)

// step is so many equal calls at one moment: so many are admitted, then the first
// refusal is as it says.
type step struct {
	at       time.Duration
	calls    int
	call     provider.Call
	admitted int
	refusal  provider.Answer
}

func play(t *testing.T, model provider.Model, steps []step) {
	t.Helper()
	for _, s := range steps {
		admitted := 0
		var refused *provider.Answer
		for range s.calls {
			answer := model.Ask(s.at, s.call)
			if answer.OK {
				admitted++
			} else if refused == nil {
				refused = &answer
			}
		}
		if admitted != s.admitted {
			t.Errorf("at %v: %d of %d admitted, want %d", s.at, admitted, s.calls, s.admitted)
		}
		if refused != nil {
			if diff := cmp.Diff(s.refusal, *refused); diff != "" {
				t.Errorf("at %v (-want +got):\n%s", s.at, diff)
			}
		}
	}
}

const second = time.Second

func TestFluid(t *testing.T) {
	t.Parallel()
	no := func(wait time.Duration) provider.Answer {
		return provider.Answer{
			RetryAfter: wait, Binding: provider.Requests, Remaining: provider.Remaining{Input: -1, Output: -1},
		}
	}
	play(t, provider.NewFluid(88), []step{
		{at: 0, calls: 200, admitted: 1, refusal: no(second)},
		{at: second, calls: 200, admitted: 1, refusal: no(second)},
		{at: 2 * second, calls: 200, admitted: 2, refusal: no(second)},
		{at: 3 * second, calls: 200, admitted: 1, refusal: no(second)},
		{at: 4 * second, calls: 200, admitted: 2, refusal: no(second)},
		{at: 59 * second, calls: 200, admitted: 81, refusal: no(second)},
	})
	play(t, provider.NewFluid(1), []step{
		{at: 0, calls: 1, admitted: 0, refusal: no(59 * second)},
		{at: 58*second + 1, calls: 1, admitted: 0, refusal: no(second)},
		{at: 59 * second, calls: 2, admitted: 1, refusal: no(60 * second)},
	})
}

func TestBuckets(t *testing.T) {
	t.Parallel()
	limits := provider.Limits{Requests: 1000, Input: 400_000, Output: 80_000}
	task := provider.Call{Input: 2500, Output: 300}
	for _, row := range []struct {
		name    string
		limits  provider.Limits
		options provider.Options
		steps   []step
	}{
		// The provider first passes a burst of what its bucket holds.
		{"S3-45_full", limits, provider.Options{}, []step{
			{0, 200, task, 160, provider.Answer{
				RetryAfter: second, Binding: provider.InputTokens,
				Remaining: provider.Remaining{Requests: 840, Input: 0, Output: 32_000},
			}},
			{second, 5, task, 2, provider.Answer{
				RetryAfter: second, Binding: provider.InputTokens,
				Remaining: provider.Remaining{Requests: 854, Input: 1666, Output: 32_733},
			}},
			{10 * time.Minute, 161, task, 160, provider.Answer{
				RetryAfter: second, Binding: provider.InputTokens,
				Remaining: provider.Remaining{Requests: 840, Input: 0, Output: 32_000},
			}},
		}},
		{"S3-45_capacity_of_a_second", limits, provider.Options{Capacity: second}, []step{
			{0, 200, task, 2, provider.Answer{
				RetryAfter: second, Binding: provider.InputTokens,
				Remaining: provider.Remaining{Requests: 14, Input: 1666, Output: 733},
			}},
			{time.Minute, 200, task, 2, provider.Answer{
				RetryAfter: second, Binding: provider.InputTokens,
				Remaining: provider.Remaining{Requests: 14, Input: 1666, Output: 733},
			}},
		}},
		{"empty", limits, provider.Options{Empty: true}, []step{
			{0, 1, task, 0, provider.Answer{RetryAfter: second, Binding: provider.InputTokens}},
			{374_999_999, 1, task, 0, provider.Answer{
				RetryAfter: second, Binding: provider.InputTokens,
				Remaining: provider.Remaining{Requests: 6, Input: 2499, Output: 499},
			}},
			{375 * time.Millisecond, 1, task, 1, provider.Answer{}},
		}},
		{"the_longest_wait_binds", provider.Limits{Requests: 6, Input: 60}, provider.Options{Empty: true}, []step{
			{0, 1, provider.Call{Input: 10, Output: 1000}, 0, provider.Answer{
				RetryAfter: 10 * second, Binding: provider.Requests, Remaining: provider.Remaining{Output: -1},
			}},
			{0, 1, provider.Call{Input: 11}, 0, provider.Answer{
				RetryAfter: 11 * second, Binding: provider.InputTokens, Remaining: provider.Remaining{Output: -1},
			}},
		}},
		{"never", limits, provider.Options{}, []step{
			{0, 1, provider.Call{Input: 400_001}, 0, provider.Answer{
				Binding: provider.InputTokens, Remaining: provider.Remaining{Requests: 1000, Input: 400_000, Output: 80_000},
			}},
		}},
		{"requests_by_the_second", provider.Limits{Requests: 600}, provider.Options{Seconds: true}, []step{
			{500 * time.Millisecond, 25, task, 10, provider.Answer{
				RetryAfter: second, Binding: provider.Requests,
				Remaining: provider.Remaining{Requests: 590, Input: -1, Output: -1},
			}},
			{second, 25, task, 10, provider.Answer{
				RetryAfter: second, Binding: provider.Requests,
				Remaining: provider.Remaining{Requests: 585, Input: -1, Output: -1},
			}},
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			play(t, provider.NewBuckets(row.limits, row.options), row.steps)
		})
	}
}

func TestMinute(t *testing.T) {
	t.Parallel()
	call := provider.Call{Input: 487, Output: 64}
	no := func(wait time.Duration) provider.Answer {
		return provider.Answer{
			RetryAfter: wait, Binding: provider.InputTokens,
			Remaining: provider.Remaining{Requests: -1, Input: 72, Output: -1},
		}
	}
	play(t, provider.NewMinute(566_500), []step{
		{at: 0, calls: 1100, call: call, admitted: 1028, refusal: no(60 * second)},
		{at: 38 * second, calls: 5, call: call, admitted: 0, refusal: no(22 * second)},
		{at: time.Minute - 1, calls: 5, call: call, admitted: 0, refusal: no(second)},
		{at: time.Minute, calls: 1100, call: call, admitted: 1028, refusal: no(60 * second)},
		{
			at: 3 * time.Minute, calls: 1, call: provider.Call{Input: 566_501}, admitted: 0,
			refusal: provider.Answer{
				Binding:   provider.InputTokens,
				Remaining: provider.Remaining{Requests: -1, Input: 566_500, Output: -1},
			},
		},
	})
}
