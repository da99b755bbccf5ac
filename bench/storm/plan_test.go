package storm

import (
	"math"
	"testing"
	"time"

	"github.com/quorlease/quorlease/bench/provider"
)

// near compares with what the incident report prints.
func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// TestPlan is the report's arithmetic, before anything runs.
func TestPlan(t *testing.T) {
	t.Parallel()
	plan := nightly()
	t.Run("S3-03", func(t *testing.T) {
		near(t, "input of live tasks", plan.Live*float64(plan.Task.Input), 180_000, 0)
		near(t, "their part of the input", plan.Share(provider.InputTokens, plan.Live), 45, 0)
		near(t, "their part of the output", plan.Share(provider.OutputTokens, plan.Live), 27, 1e-9)
	})
	t.Run("S3-04", func(t *testing.T) {
		near(t, "tasks a minute by input", plan.PerMinute(provider.InputTokens), 160, 0)
		near(t, "tasks a minute by output", plan.PerMinute(provider.OutputTokens), 266.67, 0.01)
		near(t, "tasks a minute by requests", plan.PerMinute(provider.Requests), 1000, 0)
		if got := plan.Binding(); got != provider.InputTokens {
			t.Errorf("%s binds, want the input tokens", got)
		}
		wide := plan
		wide.Limits.Input = 1_000_000
		if got := wide.Binding(); got != provider.OutputTokens {
			t.Errorf("with more input %s binds, want the output tokens", got)
		}
	})
	t.Run("S3-06", func(t *testing.T) {
		near(t, "headroom a minute", plan.Headroom(), 88, 0)
		near(t, "headroom a second", plan.Headroom()/60, 1.46667, 1e-5)
	})
	t.Run("S3-07", func(t *testing.T) {
		fits := plan.Headroom() / 60 * 5
		near(t, "tasks in five seconds", fits, 7.3333, 1e-4)
		near(t, "attempts for one", 1000/fits, 136.36, 0.01)
		near(t, "refused", 100*(1-fits/1000), 99.27, 0.01)
		near(t, "whole tasks", 988.0/7, 141.14, 0.01)
	})
	t.Run("S3-26", func(t *testing.T) {
		for window, want := range map[float64]float64{2: 100, 8: 25, 60: 3.33} {
			near(t, "a second", nightlyWorkers/window, want, 0.01)
		}
		near(t, "window", plan.Spread(nightlyWorkers).Seconds(), 136.4, 0.1)
	})
	t.Run("S3-34", func(t *testing.T) {
		near(t, "input at the limiter's most", plan.Share(provider.InputTokens, 120), 75, 0)
		near(t, "output at the limiter's most", plan.Share(provider.OutputTokens, 120), 45, 1e-9)
	})
	t.Run("S3-35", func(t *testing.T) {
		perMinute, takes := plan.At(120, backlogTasks)
		near(t, "backlog a minute", perMinute, 48, 0)
		near(t, "minutes", takes.Minutes(), 125, 1e-9)
		_, fastest := plan.At(plan.PerMinute(plan.Binding()), backlogTasks)
		near(t, "without a margin", fastest.Minutes(), 68.2, 0.02)
	})
	t.Run("worst_minute", func(t *testing.T) {
		near(t, "tasks", 60*2+burstTasks, 130, 0)
		near(t, "part of the input", plan.Share(provider.InputTokens, 130), 81.25, 0)
	})
}

// TestQuotaPlan is that of the batch job.
func TestQuotaPlan(t *testing.T) {
	t.Parallel()
	near(t, "prompt of a refused request", 4_100_000/8412.0, prompt, 0.05)
	near(t, "refused a minute", 8412/quotaLength.Minutes(), 525.75, 0)
	near(t, "requests a minute at 38.4 %", 8412/quotaLength.Minutes()/0.384, batchMinute, 1)
	total := 0.0
	for _, perMinute := range teams {
		total += perMinute
	}
	admitted := float64(quotaTokens / (request.Input + request.Output))
	near(t, "part that does not fit", 100*(1-admitted/(batchMinute+total)), 38.4, 0.1)
	near(t, "what a minute of the provider can see", 549_600+deploymentBurst, quotaTokens, 0)
}

// TestGatePlan is that of the instances' delays.
func TestGatePlan(t *testing.T) {
	t.Parallel()
	f := newFleet(1, &Outcome{})
	n := f.patient(&job{})
	total := time.Duration(0)
	const draws = 20_000
	for range draws {
		first, second := n.delay(1), n.delay(2)
		if first < 650*time.Millisecond || first >= 1400*time.Millisecond ||
			second < 1150*time.Millisecond || second >= 1900*time.Millisecond {
			t.Fatalf("delays %v and %v", first, second)
		}
		total += first + second
	}
	near(t, "both delays, mean in ms", float64(total.Milliseconds())/draws, 2549, 10)
	near(t, "in flight over all instances", gateWidth*instances, 160, 0)
}

// TestHerd: how far retries come together.
func TestHerd(t *testing.T) {
	t.Parallel()
	at := func(ms ...int) (moments []time.Duration) {
		for _, m := range ms {
			moments = append(moments, time.Duration(m)*time.Millisecond)
		}
		return moments
	}
	t.Run("S2-06", func(t *testing.T) {
		for _, row := range []struct {
			name    string
			moments []time.Duration
			want    float64
		}{
			{"nobody", nil, 0},
			{"one", at(1700), 1},
			{"all at once", at(5, 5, 5, 5), 1},
			{"one a bin", at(0, 100, 200, 300), 1},
			{"unsorted", at(300, 0, 200, 100), 1},
			{"five in one of three", at(0, 100, 200, 210, 220, 230, 240), 5.0 * 3 / 7},
			{"waves a second apart", at(0, 1, 2, 1000, 1001, 1002, 2000, 2001, 2002), 21.0 * 3 / 9},
		} {
			near(t, row.name, Herd(row.moments), row.want, 1e-9)
		}
	})
}

func TestQuantile(t *testing.T) {
	t.Parallel()
	ten := []time.Duration{10, 9, 8, 7, 6, 5, 4, 3, 2, 1}
	for part, want := range map[float64]time.Duration{0: 1, 0.1: 1, 0.11: 2, 0.5: 5, 0.95: 10, 0.9: 9, 1: 10} {
		if got := quantile(ten, part); got != want {
			t.Errorf("quantile %v: %v, want %v", part, got, want)
		}
	}
	if got := quantile(nil, 0.5); got != 0 {
		t.Errorf("of nothing: %v", got)
	}
}
