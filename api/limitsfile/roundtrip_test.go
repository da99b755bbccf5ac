package limitsfile_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"pgregory.net/rapid"

	"github.com/quorlease/quorlease/api/limitsfile"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

func optional[T any](t *rapid.T, label string, values *rapid.Generator[T]) *T {
	if !rapid.Bool().Draw(t, label+" set") {
		return nil
	}
	v := values.Draw(t, label)
	return &v
}

func optionalDuration(t *rapid.T, label string, unit time.Duration, least, most int64) *durationpb.Duration {
	n := optional(t, label, rapid.Int64Range(least, most))
	if n == nil {
		return nil
	}
	return durationpb.New(time.Duration(*n) * unit)
}

// drawLimit draws any limit that Resolve accepts; names that YAML could take for
// something else among them.
func drawLimit(t *rapid.T, name string) *quorleasev1.Limit {
	l := &quorleasev1.Limit{
		Name:  name,
		Lease: optionalDuration(t, "lease", time.Millisecond, 1, 86_400_000),
		Exact: rapid.Bool().Draw(t, "exact"), MaxKeys: optional(t, "max_keys", rapid.Int64Range(1, 1<<53)),
	}
	l.OnQuorumLoss = quorleasev1.FallbackMode(rapid.IntRange(0, 3).Draw(t, "on_quorum_loss"))
	drawAttributes(t, l)
	if rapid.IntRange(0, 9).Draw(t, "unlimited") == 0 {
		l.Unlimited = true
		return l
	}
	drawQueue(t, l)
	if drawKind(t, l) {
		return l
	}
	if rapid.Bool().Draw(t, "adaptive") {
		l.Adaptive = &quorleasev1.Adaptive{
			DecreaseBp: optional(t, "decrease", rapid.Int64Range(1, 9_999)),
			StepBp:     optional(t, "step", rapid.Int64Range(1, 10_000)),
			Interval:   optionalDuration(t, "interval", time.Second, 1, 3600),
			FloorBp:    optional(t, "floor", rapid.Int64Range(1, 10_000)),
		}
	}
	l.Escrow = optionalDuration(t, "escrow", time.Millisecond, 100, 3_600_000)
	l.FallbackShareBp = optional(t, "fallback", rapid.Int64Range(0, 10_000))
	l.TargetBp = optional(t, "target", rapid.Int64Range(1, 10_000))
	if l.GetOnQuorumLoss() == quorleasev1.FallbackMode_SHARE_ON_LOSS && (l.TargetBp == nil || l.GetTargetBp() > 1) {
		l.ShareReserveBp = rapid.Int64Range(0, 5_000).Draw(t, "reserve")
	}
	left := int64(10_000)
	for i := range rapid.IntRange(0, 3).Draw(t, "classes") {
		share := rapid.Int64Range(0, left).Draw(t, "share")
		left -= share
		c := &quorleasev1.Class{Name: fmt.Sprintf("%s_%d", []string{"y", "null", "c"}[i], i), ShareBp: share}
		if share > 0 {
			c.BurstBp = optional(t, "sub-burst", rapid.Int64Range(0, share))
		}
		l.Classes = append(l.Classes, c)
	}
	size := rapid.Int64Range(1, 1_000_000)
	for _, dimension := range []string{"requests", "null", "y"}[:rapid.IntRange(1, 3).Draw(t, "dimensions")] {
		unit := rapid.SampledFrom([]time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour}).Draw(t, "unit")
		l.Dimensions = append(l.Dimensions, &quorleasev1.Dimension{
			Name: dimension,
			Rate: &quorleasev1.Rate{
				Amount:   rapid.Int64Range(0, 100_000).Draw(t, "amount"),
				Interval: durationpb.New(unit * time.Duration(rapid.Int64Range(1, 90).Draw(t, "count"))),
			},
			Burst:   optional(t, "burst", size),
			MaxDebt: optional(t, "max_debt", size),
			MaxOpen: optional(t, "max_open", size),
		})
	}
	if len(l.GetPer()) > 0 {
		for i := range rapid.IntRange(0, 2).Draw(t, "overrides") {
			l.Overrides = append(l.Overrides, &quorleasev1.Override{
				Key: fmt.Sprintf("%d%s", i, rapid.StringMatching(`[^\p{Cc}]{0,20}`).Draw(t, "override")),
				Dimensions: []*quorleasev1.Dimension{{
					Name: "requests", Rate: &quorleasev1.Rate{
						Amount:   rapid.Int64Range(1, 100_000).Draw(t, "amount"),
						Interval: durationpb.New(time.Minute),
					},
					MaxDebt: optional(t, "max_debt", size),
				}},
			})
		}
	}
	return l
}

// drawAttributes draws what every kind of limit can have.
func drawAttributes(t *rapid.T, l *quorleasev1.Limit) {
	l.Mode = quorleasev1.Mode(rapid.IntRange(0, 4).Draw(t, "mode"))
	l.MaxKeysPerClient = rapid.Int64Range(0, 3).Draw(t, "max_keys_per_client")
	if rapid.Bool().Draw(t, "source") {
		l.Source = &quorleasev1.Reference{
			Url:        rapid.StringMatching(`[^\p{Cc}]{0,20}`).Draw(t, "url"),
			VerifiedAt: rapid.SampledFrom([]string{"", "2026-10-22"}).Draw(t, "verified_at"),
		}
	}
	switch rapid.IntRange(0, 2).Draw(t, "per") {
	case 1:
		l.Per = []string{"key"}
	case 2:
		l.Per = []string{"y", "tenant"}
		l.Match = map[string]string{"y": "*", "null": rapid.StringMatching(`[^*\p{Cc}]{1,20}[*]?`).Draw(t, "value")}
	}
}

func drawQueue(t *rapid.T, l *quorleasev1.Limit) {
	l.Ramp = optionalDuration(t, "ramp", time.Second, 0, 3600)
	if !rapid.Bool().Draw(t, "queue") {
		return
	}
	l.Queue = &quorleasev1.Queue{
		Max:       optional(t, "max", rapid.Int64Range(0, 1000)),
		MaxTokens: rapid.Int64Range(0, 3).Draw(t, "max_tokens"),
		MaxWait:   optionalDuration(t, "max_wait", time.Second, 0, 3600),
	}
	if rapid.Bool().Draw(t, "weights") {
		client := rapid.StringMatching(`[^\p{Cc}]{1,20}`).Draw(t, "client")
		l.Queue.Weights = map[string]int64{client: rapid.Int64Range(1, 1000).Draw(t, "weight")}
	}
}

// drawKind makes a concurrency limit or a quota of l, or neither.
func drawKind(t *rapid.T, l *quorleasev1.Limit) bool {
	number := rapid.Int64Range(0, 1<<53)
	override := &quorleasev1.Override{Prefix: "x"}
	switch rapid.IntRange(0, 4).Draw(t, "kind") {
	case 0:
		l.Concurrency = ptr(number.Draw(t, "concurrency"))
		override.Dimensions = []*quorleasev1.Dimension{{Name: "slots", Burst: ptr(number.Draw(t, "slots"))}}
	case 1:
		l.Quota = &quorleasev1.Quota{
			Period:   quorleasev1.Quota_Period(rapid.IntRange(1, 3).Draw(t, "period")),
			Timezone: rapid.SampledFrom([]string{"", "UTC", "Europe/Berlin", "Asia/Kolkata"}).Draw(t, "zone"),
			Amounts:  map[string]int64{"y": number.Draw(t, "amount"), "requests": number.Draw(t, "amount")},
			WarnBp:   [][]int64{nil, {1}, {8000, 9999}}[rapid.IntRange(0, 2).Draw(t, "warn")],
		}
		override.Dimensions = []*quorleasev1.Dimension{{Name: "y", Burst: ptr(number.Draw(t, "amount"))}}
	default:
		return false
	}
	if len(l.GetPer()) > 0 {
		l.Overrides = []*quorleasev1.Override{override}
	}
	return true
}

func resolves(l *quorleasev1.Limit) bool {
	_, err := limitsfile.Resolve(l)
	return err == nil
}

func drawBudget(t *rapid.T, i int) *quorleasev1.RetryBudget {
	b := &quorleasev1.RetryBudget{
		Name:          fmt.Sprintf("budget_%d", i),
		Client:        fmt.Sprintf("%d%s*", i, rapid.StringMatching(`[^*\p{Cc}]{0,20}`).Draw(t, "client")),
		MaxRetries:    optional(t, "max_retries", rapid.Uint32Range(0, 1_000_000)),
		MaxFractionBp: optional(t, "max_fraction", rapid.Int64Range(0, 9_999)),
		Window:        optionalDuration(t, "window", 3*time.Second, 1, 28_800),
		MinRequests:   optional(t, "min_requests", rapid.Int64Range(0, 1<<53)),
		RetryAfter:    optionalDuration(t, "retry_after", time.Millisecond, 1, 86_400_000),

		Scope:          quorleasev1.Scope(rapid.IntRange(0, 2).Draw(t, "scope")),
		Mode:           quorleasev1.Mode(rapid.IntRange(0, 4).Draw(t, "mode")),
		WarnFractionBp: optional(t, "warn", rapid.Int64Range(0, 9_999)),
		WarnFor:        optionalDuration(t, "for", time.Second, 0, 3600),
	}
	if rapid.Bool().Draw(t, "min_retries") {
		b.MinRetries = &quorleasev1.Rate{
			Amount: rapid.Int64Range(0, 50).Draw(t, "floor"), Interval: durationpb.New(time.Second),
		}
	}
	return b
}

func drawRequest(t *rapid.T) *quorleasev1.LimitsApplyRequest {
	req := &quorleasev1.LimitsApplyRequest{}
	names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z0-9][a-z0-9_.-]{0,20}|true|null|1e3|0x1f|1_000|y`), 0, 4,
		rapid.ID[string]).Draw(t, "names")
	for _, name := range names {
		// Some rates with some shares can't be counted in 63 bits, and a class
		// that others leave nothing is refused.
		if l := drawLimit(t, name); resolves(l) {
			req.Limits = append(req.Limits, l)
		}
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "budgets") {
		req.RetryBudgets = append(req.RetryBudgets, drawBudget(t, i))
	}
	return req
}

// What can be applied can be written down and read again, unchanged.
func TestFormatRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		req := drawRequest(t)
		text := limitsfile.Format(req)
		got, err := limitsfile.Parse(text)
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if diff := cmp.Diff(req, got, protocmp.Transform()); diff != "" {
			t.Fatalf("-want +got:\n%s\nin\n%s", diff, text)
		}
	})
}

// What is logged can be shown, applied again and formatted, and stays the same.
func TestDescribeRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all, err := limitsfile.ResolveAll(drawRequest(t))
		if err != nil {
			t.Fatal(err)
		}
		shown := &quorleasev1.LimitsApplyRequest{}
		for _, l := range all.GetLimits() {
			shown.Limits = append(shown.Limits, limitsfile.Describe(l))
		}
		for _, b := range all.GetRetryBudgets() {
			shown.RetryBudgets = append(shown.RetryBudgets, limitsfile.DescribeBudget(b))
		}
		text := limitsfile.Format(shown)
		parsed, err := limitsfile.Parse(text)
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		for _, req := range []*quorleasev1.LimitsApplyRequest{shown, parsed} {
			again, err := limitsfile.ResolveAll(req)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(all, again, protocmp.Transform()); diff != "" {
				t.Fatalf("-want +got:\n%s\nin\n%s", diff, text)
			}
		}
	})
}

// FuzzParse: no file makes the parser panic; what it accepts it can write, and
// reads as the same.
func FuzzParse(f *testing.F) {
	f.Add([]byte(sample))
	f.Add([]byte(kinds))
	f.Add([]byte(head + "    burst: 10s\n    classes: {live: {share: 60%}}\n"))
	f.Add([]byte("limits: []\n"))
	f.Add([]byte("---\n# c\nlimits: [{name: \"a\", rate: {r: 0/min}}]\n...\n"))
	f.Add([]byte("retry_budgets:\n- {name: b, match: {client: \"\\u00e9*\"}}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		req, err := limitsfile.Parse(data)
		if err != nil {
			return
		}
		text := limitsfile.Format(req)
		again, err := limitsfile.Parse(text)
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if diff := cmp.Diff(req, again, protocmp.Transform()); diff != "" {
			t.Fatalf("-want +got:\n%s\nin\n%s", diff, text)
		}
	})
}
