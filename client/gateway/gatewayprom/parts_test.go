package gatewayprom

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quorlease/quorlease/client/gateway"
	"github.com/quorlease/quorlease/client/gateway/coalesce"
	"github.com/quorlease/quorlease/client/gateway/estimate"
)

// pick are some of the samples of a collector.
func pick(t *testing.T, c *Collector, series ...string) map[string]float64 {
	t.Helper()
	all := samples(gather(t, c))
	got := make(map[string]float64)
	for _, one := range series {
		value, ok := all[one]
		if !ok {
			t.Fatalf("there is no %s in %v", one, all)
		}
		got[one] = value
	}
	return got
}

func TestDuplicates(t *testing.T) {
	t.Parallel()
	t.Run("S2-30_what_is_done_twice_is_told_from_what_is_shared", func(t *testing.T) {
		t.Parallel()
		group, err := coalesce.New[int](coalesce.Config{Followers: 3})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(group.Close)
		work := func(ctx context.Context, _ *coalesce.Writer[int]) error {
			<-ctx.Done()
			return errors.New("nobody waits")
		}
		// One leads, three follow, and two find no place.
		alone := 0
		for range 6 {
			reader, ok := group.Join(t.Context(), coalesce.Key{Tenant: "red", Model: "gpt"}, work)
			if !ok {
				alone++
				continue
			}
			t.Cleanup(reader.Close)
		}
		if alone != 2 {
			t.Fatalf("%d found no place, want 2", alone)
		}
		f := &fake{stats: gateway.Stats{Shared: group.Stats(), Repeated: 5}}
		got := pick(t, New(f, nil), "duplicates_executed_total{}", "coalesced_total{}", "shared_total{}")
		want := map[string]float64{"duplicates_executed_total{}": 7, "coalesced_total{}": 3, "shared_total{}": 1}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestEndings(t *testing.T) {
	t.Parallel()
	t.Run("S3-18_retried_and_exhausted", func(t *testing.T) {
		t.Parallel()
		f := &fake{stats: gateway.Stats{Retried: 14, Exhausted: 3}}
		got := pick(t, New(f, nil), `failed_tries_total{ending="retried"}`, `failed_tries_total{ending="exhausted"}`)
		want := map[string]float64{`failed_tries_total{ending="retried"}`: 14, `failed_tries_total{ending="exhausted"}`: 3}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// learnt are the errors of n requests of 1000 tokens, which were reported to have so many.
func learnt(t *testing.T, n int, reported func(i int) int64) estimate.Errors {
	t.Helper()
	c := corrections(t)
	for i := range n {
		learn(c, reported(i))
	}
	return c.Errors()
}

func corrections(t *testing.T) *estimate.Corrections {
	t.Helper()
	c, err := estimate.NewCorrections(estimate.CorrectionsOptions{PairsMax: 1})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// learn has another tenant beside, for which the first one is forgotten: so nothing is
// corrected, and the errors are those that are asked for.
func learn(c *estimate.Corrections, reported int64) {
	c.Learn("red", "gpt", 1000, reported)
	c.Learn("other", "gpt", 1000, 1000)
}

func TestEstimates(t *testing.T) {
	t.Parallel()
	const margin, count, sum = "estimate_margin_ratio{}", "estimate_ratio{} count", "estimate_ratio{} sum"
	t.Run("S3-36_a_quarter_until_enough_were_seen", func(t *testing.T) {
		t.Parallel()
		f := &fake{stats: gateway.Stats{Estimates: learnt(t, 499, func(int) int64 { return 1065 })}}
		c := New(f, nil)
		if got := pick(t, c, margin)[margin]; got != 0.25 {
			t.Errorf("of 998 requests the margin is %g, want 0.25", got)
		}
		f.stats.Estimates = learnt(t, 500, func(int) int64 { return 1065 })
		if got := pick(t, c, margin)[margin]; got != 0.07 {
			t.Errorf("of 1000 requests the margin is %g, want 0.07", got)
		}
	})
	t.Run("S3-36_a_bar_is_counted_where_it_belongs", func(t *testing.T) {
		t.Parallel()
		reported := []int64{1, 250, 251, 980, 1000, 1001, 1050, 1051, 2000, 4000, 4001, 90_000}
		f := &fake{stats: gateway.Stats{Estimates: learnt(t, len(reported), func(i int) int64 { return reported[i] })}}
		got := pick(t, New(f, nil), count, "estimate_ratio{} 0.25", "estimate_ratio{} 0.5", "estimate_ratio{} 0.98",
			"estimate_ratio{} 1", "estimate_ratio{} 1.02", "estimate_ratio{} 1.05", "estimate_ratio{} 1.1",
			"estimate_ratio{} 2", "estimate_ratio{} 4")
		// Those of the other tenant are exact: one each.
		want := map[string]float64{
			count: 24, "estimate_ratio{} 0.25": 2, "estimate_ratio{} 0.5": 3, "estimate_ratio{} 0.98": 4,
			"estimate_ratio{} 1": 17, "estimate_ratio{} 1.02": 18, "estimate_ratio{} 1.05": 19,
			"estimate_ratio{} 1.1": 20, "estimate_ratio{} 2": 21, "estimate_ratio{} 4": 22,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("S3-36_the_histogram_never_falls", func(t *testing.T) {
		t.Parallel()
		// Every 2^20 requests the errors forget half of what they know.
		learned := corrections(t)
		f := &fake{}
		c := New(f, nil)
		const step, steps = 40_000, 16
		last := map[string]float64{}
		forgot := 0
		for i := 1; i <= steps; i++ {
			before := learned.Errors()
			for range step {
				learn(learned, 1500)
			}
			f.stats.Estimates = learned.Errors()
			if f.stats.Estimates.Requests() < before.Requests() {
				forgot++
			}
			now := pick(t, c, count, sum, "estimate_ratio{} 1", "estimate_ratio{} 1.5")
			for series, value := range now {
				if value < last[series] {
					t.Fatalf("%s fell from %g to %g after %d requests", series, last[series], value, 2*step*i)
				}
			}
			last = now
		}
		if forgot != 1 {
			t.Fatalf("the errors forgot %d times, want once", forgot)
		}
		// Of the step in which it was forgotten a part counts half.
		const all = 2 * step * steps
		if got := last[count]; got > all || got < all-step {
			t.Errorf("%g requests, want %d, and at most %d less", got, all, step)
		}
		if got := last[sum] / last[count]; got < 1.249 || got > 1.251 {
			t.Errorf("the mean is %g, want 1.25", got)
		}
	})
}
