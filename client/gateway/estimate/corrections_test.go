package estimate_test

import (
	"math"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/quorlease/quorlease/client/gateway/estimate"
)

func corrections(t testing.TB, most int) *estimate.Corrections {
	t.Helper()
	c, err := estimate.NewCorrections(estimate.CorrectionsOptions{PairsMax: most})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// sizes are those of requests that are off by a factor with a lognormal error.
type sizes struct {
	seed          uint64
	factor, sigma float64
}

// replay runs so many requests in so many parts, and returns how far the sum of corrected
// estimates was off in each.
func (s sizes) replay(c *estimate.Corrections, parts, each int) []float64 {
	chance := rand.New(rand.NewPCG(s.seed, 0))
	var off []float64
	for range parts {
		var expected, used float64
		for range each {
			guess := 500 + chance.Int64N(4000)
			size := int64(math.Round(float64(guess) * s.factor * math.Exp(s.sigma*chance.NormFloat64())))
			expected += float64(c.Tokens("t", "m", guess))
			used += float64(size)
			c.Learn("t", "m", guess, size)
		}
		off = append(off, expected/used-1)
	}
	return off
}

func TestCorrections(t *testing.T) {
	t.Parallel()
	t.Run("S3-31_errors_of_a_fifth_cancel_out_and_do_not_drift", func(t *testing.T) {
		for _, factor := range []float64{0.6, 1, 1.3, 3} {
			for seed := range uint64(5) {
				c := corrections(t, 0)
				sizes{seed, factor, 0.2}.replay(c, 1, 500)
				later := sizes{seed + 100, factor, 0.2}.replay(c, 10, 10_000)
				for part, off := range later {
					if math.Abs(off) > 0.01 {
						t.Errorf("factor %v, seed %d, requests from %d: the sum is off by %.2f %%",
							factor, seed, part*10_000, 100*off)
					}
				}
				want := factor * math.Exp(0.02)
				if got := c.Factor("t", "m"); math.Abs(got/want-1) > 0.1 {
					t.Errorf("factor %.3f, want %.3f", got, want)
				}
			}
		}
	})
	t.Run("S3-36_a_margin_needs_a_thousand_requests", func(t *testing.T) {
		c := corrections(t, 0)
		sizes{1, 1, 0.2}.replay(c, 1, estimate.EnoughRequests-1)
		errs := c.Errors()
		if part, ok := errs.Margin(); part != 0.25 || ok {
			t.Errorf("margin %v, %v of too few requests", part, ok)
		}
		sizes{2, 1, 0.2}.replay(c, 1, 50_000)
		errs = c.Errors()
		// The 99th of a hundred lies 2.326 sigma above the middle, the mean 0.02 above it:
		// exp(0.4653 - 0.02) = 1.56, and a percent or two that the correction itself varies.
		if part, ok := errs.Margin(); part < 0.54 || part > 0.60 || !ok {
			t.Errorf("margin %v, %v of a lognormal error of 0.2", part, ok)
		}
		if mean := errs.Mean(); math.Abs(mean) > 0.01 {
			t.Errorf("mean error %v", mean)
		}
	})
	t.Run("S3-36_exact_estimates_need_no_margin", func(t *testing.T) {
		c := corrections(t, 0)
		sizes{3, 1, 0}.replay(c, 1, 2000)
		errs := c.Errors()
		if part, ok := errs.Margin(); part != 0 || !ok {
			t.Errorf("margin %v, %v", part, ok)
		}
	})
}

func TestCorrectionsAreBounded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 4).Draw(t, "most")
		c, err := estimate.NewCorrections(estimate.CorrectionsOptions{PairsMax: most})
		if err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(0, 50).Draw(t, "requests") {
			tenant := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "tenant")
			model := rapid.SampledFrom([]string{"m", "n"}).Draw(t, "model")
			guess := rapid.Int64Range(-1, 1<<40).Draw(t, "guess")
			c.Learn(tenant, model, guess, rapid.Int64Range(-1, 1<<40).Draw(t, "used"))
			factor := c.Factor(tenant, model)
			if factor < estimate.FactorMin || factor > estimate.FactorMax {
				t.Fatalf("factor %v", factor)
			}
			if tokens := c.Tokens(tenant, model, guess); tokens < 0 || float64(tokens) > 4*float64(max(0, guess)) {
				t.Fatalf("%d tokens of an estimate of %d", tokens, guess)
			}
			if c.Len() > most {
				t.Fatalf("%d pairs, want at most %d", c.Len(), most)
			}
		}
	})
}

func TestThePairThatWasNotUsedIsForgotten(t *testing.T) {
	t.Parallel()
	c := corrections(t, 2)
	for range 200 {
		c.Learn("a", "m", 100, 200)
		c.Learn("b", "m", 100, 200)
	}
	if got := c.Factor("a", "m"); math.Abs(got-2) > 0.05 {
		t.Errorf("factor %v, want 2", got)
	}
	c.Learn("c", "m", 100, 100)
	if a, b := c.Factor("a", "m"), c.Factor("b", "m"); a < 1.9 || b != 1 {
		t.Errorf("factors %v of one that was asked for and %v of one that was not, want 2 and 1", a, b)
	}
	// Learning of a pair uses it too.
	_ = c.Factor("c", "m")
	c.Learn("a", "m", 100, 200)
	c.Learn("e", "m", 100, 100)
	if a := c.Factor("a", "m"); a < 1.9 {
		t.Errorf("factor %v of one that was learnt of, want 2", a)
	}
	// Learning nothing makes no pair.
	c.Learn("d", "m", 0, 5)
	c.Learn("d", "m", 5, 0)
	if c.Len() != 2 || c.Factor("d", "m") != 1 {
		t.Errorf("%d pairs", c.Len())
	}
}

func TestOneOddReportDoesNotTurnItOver(t *testing.T) {
	t.Parallel()
	c := corrections(t, 0)
	c.Learn("a", "m", 100, 1_000_000)
	if got := c.Factor("a", "m"); got > 2.5 {
		t.Errorf("factor %v after one report of ten thousand times the estimate", got)
	}
}

func TestCorrectionsOptions(t *testing.T) {
	t.Parallel()
	_, err := estimate.NewCorrections(estimate.CorrectionsOptions{PairsMax: -1})
	if err == nil || err.Error() != "pairs -1: want 1 to 1048576, or 0 for 4096" {
		t.Errorf("%v", err)
	}
}

func TestErrorsHistogram(t *testing.T) {
	t.Parallel()
	c := corrections(t, 1000)
	// One request of each pair meets no correction.
	for i, used := range []int64{75, 100, 100, 101, 125, 600, 1} {
		c.Learn(strconv.Itoa(i), "m", 100, used)
	}
	errs := c.Errors()
	want := []estimate.Bucket{{-0.99, 1}, {-0.25, 1}, {0, 2}, {0.01, 1}, {0.25, 1}, {4, 1}}
	got := errs.Buckets()
	if len(got) != len(want) {
		t.Fatalf("%v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("bar %d: %v, want %v", i, got[i], want[i])
		}
	}
	for q, want := range map[float64]float64{0: -0.99, 0.5: 0, 0.7: 0.01, 0.8: 0.25, 1: 4} {
		if got := errs.Quantile(q); got != want {
			t.Errorf("quantile %v: %v, want %v", q, got, want)
		}
	}
	if errs.Requests() != 7 {
		t.Errorf("%d requests", errs.Requests())
	}
	// An error is rounded up: a margin of what is shown is enough.
	for used, want := range map[int64]float64{1004: 0.01, 1010: 0.01, 1011: 0.02, 996: 0, 990: -0.01} {
		c := corrections(t, 1)
		c.Learn("a", "m", 1000, used)
		errs := c.Errors()
		if got := errs.Quantile(1); got != want {
			t.Errorf("%d of 1000: %v, want %v", used, got, want)
		}
	}
	var none estimate.Errors
	if none.Quantile(0.99) != 0 || none.Mean() != 0 || none.Buckets() != nil {
		t.Errorf("of nothing: %v, %v, %v", none.Quantile(0.99), none.Mean(), none.Buckets())
	}
}

func TestTheHistogramAges(t *testing.T) {
	t.Parallel()
	c := corrections(t, 1)
	for range 1<<20 + 10 {
		c.Learn("a", "m", 100, 100)
	}
	errs := c.Errors()
	if n := errs.Requests(); n != 1<<19+10 {
		t.Errorf("%d requests are kept, want %d", n, 1<<19+10)
	}
}

func TestCorrectionsConcurrently(t *testing.T) {
	t.Parallel()
	c := corrections(t, 3)
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := range 2000 {
				tenant := strconv.Itoa((worker + i) % 5)
				c.Learn(tenant, "m", 100, 150)
				_ = c.Tokens(tenant, "m", 100)
				errs := c.Errors()
				_ = errs.Requests()
			}
		})
	}
	all.Wait()
	errs := c.Errors()
	if errs.Requests() != 16_000 || c.Len() != 3 {
		t.Errorf("%d requests and %d pairs, want 16000 and 3", errs.Requests(), c.Len())
	}
}

// A bar has what is exactly at its end: seven of a hundred are no eighth.
func TestErrorsAreCountedExactly(t *testing.T) {
	t.Parallel()
	for percent := int64(-99); percent < 400; percent++ {
		c := corrections(t, 16)
		c.Learn("a", "m", 100, 100+percent)
		errors := c.Errors()
		if got, want := errors.Quantile(1), float64(percent)/100; got != want {
			t.Errorf("%d reported of 100: %v, want %v", 100+percent, got, want)
		}
	}
}
