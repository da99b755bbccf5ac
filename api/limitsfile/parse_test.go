package limitsfile_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/quorlease/quorlease/api/limitsfile"
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

const sample = `# Two limits and one budget.
limits:
  - name: azure-gpt4o
    per: []
    burst: 10s
    rate: {requests: 1000/min, input_tokens: 400_000/min, output_tokens: 6/10s}
    target: 75%
    classes: {live: {share: 60%, burst: 50%}, batch: {share: 0%}}
    max_debt: {requests: 7}
    max_open: 30s
    exact: true
    lease: 2m
    max_keys: 1_000
    on_quorum_loss: share
    fallback: {share: 12.5%}
  - {name: free, per: [key], unlimited: true, on_quorum_loss: closed}
retry_budgets:
  - name: default
    match: {client: "*"}
    max_retries: 3
    max_fraction: 12.5%
    window: 5m
    min_requests: 50
    retry_after: 60s
`

func ptr[T any](v T) *T { return &v }

func TestParseReadsEveryField(t *testing.T) {
	t.Parallel()
	got, err := limitsfile.Parse([]byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	minute := durationpb.New(time.Minute)
	want := &quorleasev1.LimitsApplyRequest{
		Limits: []*quorleasev1.Limit{{
			Name: "azure-gpt4o",
			Dimensions: []*quorleasev1.Dimension{
				// 75 % of 1000 a minute is 125 in 10 s and 375 in 30 s.
				{
					Name: "requests", Rate: &quorleasev1.Rate{Amount: 1000, Interval: minute},
					Burst: ptr[int64](125), MaxDebt: ptr[int64](7), MaxOpen: ptr[int64](375),
				},
				{
					Name: "input_tokens", Rate: &quorleasev1.Rate{Amount: 400_000, Interval: minute},
					Burst: ptr[int64](50_000), MaxOpen: ptr[int64](150_000),
				},
				// 4.5 and 13.5, rounded down.
				{
					Name:  "output_tokens",
					Rate:  &quorleasev1.Rate{Amount: 6, Interval: durationpb.New(10 * time.Second)},
					Burst: ptr[int64](4), MaxOpen: ptr[int64](13),
				},
			},
			Classes: []*quorleasev1.Class{
				{Name: "live", ShareBp: 6000, BurstBp: ptr[int64](5000)},
				{Name: "batch"},
			},
			TargetBp: ptr[int64](7500), Exact: true,
			Lease: durationpb.New(2 * time.Minute), MaxKeys: ptr[int64](1000),
			OnQuorumLoss: quorleasev1.FallbackMode_SHARE_ON_LOSS, FallbackShareBp: ptr[int64](1250),
		}, {
			Name: "free", Per: []string{"key"}, Unlimited: true, OnQuorumLoss: quorleasev1.FallbackMode_CLOSED_ON_LOSS,
		}},
		RetryBudgets: []*quorleasev1.RetryBudget{{
			Name: "default", Client: "*", MaxRetries: ptr[uint32](3), MaxFractionBp: ptr[int64](1250),
			Window: durationpb.New(5 * time.Minute), MinRequests: ptr[int64](50), RetryAfter: minute,
		}},
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// resolved is the first limit of a file, complete.
func resolved(t *testing.T, file string) *logv1.Limit {
	t.Helper()
	req, err := limitsfile.Parse([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	l, err := limitsfile.Resolve(req.GetLimits()[0])
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	got := resolved(t, "limits:\n  - name: a\n    rate: {requests: 10/min, slow: 1/h}\n")
	want := &logv1.Limit{
		Name: "a", Target: 10_000, Lease: int64(5 * time.Second), MaxKeys: 100_000,
		OnQuorumLoss: logv1.OnQuorumLoss_ON_QUORUM_LOSS_OPEN,
		Ramp:         int64(time.Minute), Escrow: int64(3 * time.Second),
		Queue: &logv1.Queue{Max: 10_000, MaxWait: int64(time.Minute)},
		Dimensions: []*logv1.Dimension{
			{Name: "requests", Amount: 10, Interval: int64(time.Minute), Burst: 10, MaxDebt: 10, MaxOpen: 10},
			// A sixtieth of a token in 60 s: the burst is 1 all the same.
			{Name: "slow", Amount: 1, Interval: int64(time.Hour), Burst: 1},
		},
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	budget, err := limitsfile.ResolveBudget(&quorleasev1.RetryBudget{Name: "b", Client: "batch-*"})
	if err != nil {
		t.Fatal(err)
	}
	wantBudget := &logv1.RetryBudget{
		Name: "b", Client: "batch-*", MaxRetries: 3, MaxFraction: 2000, Window: int64(5 * time.Minute),
		MinRequests: 50, RetryAfter: int64(time.Minute), WarnFraction: 1000, WarnFor: int64(2 * time.Minute),
	}
	if diff := cmp.Diff(wantBudget, budget, protocmp.Transform()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestZeroAndLarge(t *testing.T) {
	t.Parallel()
	t.Run("A06_zero_means_none", func(t *testing.T) {
		t.Parallel()
		d := resolved(t, "limits: [{name: a, rate: {requests: 0/min}}]").GetDimensions()[0]
		if d.GetAmount() != 0 || d.GetBurst() != 0 {
			t.Errorf("rate 0/min: amount %d burst %d, want 0 and 0", d.GetAmount(), d.GetBurst())
		}
		d = resolved(t, "limits: [{name: a, rate: {requests: 0/s}, burst: {requests: 5}}]").GetDimensions()[0]
		if d.GetBurst() != 5 {
			t.Errorf("rate 0/s with a burst of 5: burst %d", d.GetBurst())
		}
	})
	t.Run("A10_a_large_burst_is_exact", func(t *testing.T) {
		t.Parallel()
		l := resolved(t, "limits: [{name: a, rate: {t: 1_000_000_000/s}, burst: {t: 1_000_000_000_000}}]")
		if got := l.GetDimensions()[0].GetBurst(); got != 1_000_000_000_000 {
			t.Errorf("burst %d", got)
		}
	})
}

func TestEmptyFilesNameNothing(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"limits: []\n", "---\nlimits: []\n...\n", "# c\nlimits: []\nretry_budgets: []"} {
		req, err := limitsfile.Parse([]byte(text))
		if err != nil || len(req.GetLimits())+len(req.GetRetryBudgets()) != 0 {
			t.Errorf("%q: %v, %v", text, req, err)
		}
	}
	for _, text := range []string{"", "\n\n", "# only a comment\n", "---\n"} {
		_, err := limitsfile.Parse([]byte(text))
		if err == nil || !strings.Contains(err.Error(), "the file is empty") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
