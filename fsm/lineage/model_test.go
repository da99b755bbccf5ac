package lineage_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/lineage"
)

func slotLimit() *logv1.Limit {
	return &logv1.Limit{
		Name: "inflight", Kind: logv1.Kind_KIND_CONCURRENCY, Keyed: true, Target: 10_000,
		Lease: int64(time.Minute), MaxKeys: 100, MaxKeysPerClient: 100, Per: []string{"tenant"},
		Match:      []*logv1.Match{{Attribute: "tenant", Prefix: true}},
		Dimensions: []*logv1.Dimension{{Name: "slots", Interval: 1, Burst: 4}},
		Overrides: []*logv1.Override{
			{Value: "big", Dimensions: []*logv1.Dimension{{Name: "slots", Interval: 1, Burst: 40}}},
		},
	}
}

func quotaLimit() *logv1.Limit {
	return &logv1.Limit{
		Name: "month", Kind: logv1.Kind_KIND_QUOTA, Keyed: true, Target: 10_000,
		Lease: int64(time.Minute), MaxKeys: 100, Warn: []int64{8_000, 9_000},
		Calendar: &logv1.Calendar{Period: logv1.Calendar_PERIOD_MONTH, Timezone: "Europe/Berlin"},
		Dimensions: []*logv1.Dimension{
			{Name: "requests", Interval: 1, Burst: 100, MaxDebt: 10, MaxOpen: 50}, {Name: "tokens", Interval: 1},
		},
		Overrides: []*logv1.Override{{Value: "big-", Prefix: true, Dimensions: []*logv1.Dimension{
			{Name: "requests", Interval: 1, Burst: 1000}, {Name: "tokens", Interval: 1, Burst: 1 << 53},
		}}},
	}
}

// rateLimit has all that a rate may have.
func rateLimit() *logv1.Limit {
	l := whole()
	l.Keyed, l.MaxKeys, l.Calendar, l.Warn = true, 10, nil, nil
	return l
}

// TestFieldsOfTheModelThatCantBeUsed: an error names the field, the value and the
// bound.
func TestFieldsOfTheModelThatCantBeUsed(t *testing.T) {
	t.Parallel()
	kinds := map[string]func() *logv1.Limit{"rate": rateLimit, "slots": slotLimit, "quota": quotaLimit}
	for name, kind := range kinds {
		if _, err := lineage.Shapes(kind()); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	type limit = *logv1.Limit
	for _, tt := range []struct {
		kind, field, says string
		change            func(limit)
	}{
		{"rate", "kind", "3", func(l limit) { l.Kind = 3 }},
		{"rate", "mode", "4", func(l limit) { l.Mode = 4 }},
		{"rate", "calendar", "absent", func(l limit) { l.Calendar = &logv1.Calendar{} }},
		{"rate", "warn", "1 parts", func(l limit) { l.Warn = []int64{1} }},
		{"rate", "ramp", "from 0s to 1h", func(l limit) { l.Ramp = int64(time.Hour) + 1 }},
		{"rate", "ramp", "-1ns", func(l limit) { l.Ramp = -1 }},
		{"rate", "adaptive.decrease", "10000", func(l limit) { l.Adaptive.Decrease = 10_000 }},
		{"rate", "adaptive.step", "0: must be from 1", func(l limit) { l.Adaptive.Step = 0 }},
		{"rate", "adaptive.interval", "24h", func(l limit) { l.Adaptive.Interval = int64(25 * time.Hour) }},
		{"rate", "adaptive.floor", "0: must be from 1", func(l limit) { l.Adaptive.Floor = 0 }},
		{"rate", "match", "17 attributes", func(l limit) { l.Match = make([]*logv1.Match, 17) }},
		{"rate", "match[0].attribute", `"A"`, func(l limit) { l.Match[0].Attribute = "A" }},
		{"rate", "match[1].attribute", "twice", func(l limit) { l.Match[1].Attribute = "model" }},
		{"rate", "match[0].value", `"": must be 1`, func(l limit) { l.Match[0].Value = "" }},
		{"rate", "match[1].value", "control characters", func(l limit) { l.Match[1].Value = "a\n" }},
		{"rate", "per", "without keys", func(l limit) { l.Keyed = false }},
		{"rate", "per", "17 attributes", func(l limit) { l.Per = make([]string, 17) }},
		{"rate", "per[1]", "twice", func(l limit) { l.Per[1] = "tenant" }},
		{"rate", "overrides", "without keys", func(l limit) { l.Keyed, l.Per = false, nil }},
		{"rate", "overrides", "unlimited", func(l limit) { l.Unlimited, l.Dimensions = true, nil }},
		{"rate", "overrides", "1001", func(l limit) { l.Overrides = make([]*logv1.Override, 1001) }},
		{"rate", "overrides[0].value", `"": must be 1 to 512`, func(l limit) { l.Overrides[0].Value = "" }},
		{"rate", "overrides[1].value", "twice", func(l limit) { l.Overrides = append(l.Overrides, l.Overrides[0]) }},
		{"rate", "overrides[0].dimensions", "0: must be the 1", func(l limit) { l.Overrides[0].Dimensions = nil }},
		{"rate", "overrides[0].dimensions[0].name", `"x"`, func(l limit) { l.Overrides[0].Dimensions[0].Name = "x" }},
		{"rate", "overrides[0].dimensions[0].burst", "0: must", func(l limit) { l.Overrides[0].Dimensions[0].Burst = 0 }},
		{"rate", "overrides[0].dimensions[0].max_open", "-1", func(l limit) { l.Overrides[0].Dimensions[0].MaxOpen = -1 }},
		{"rate", "queue.max", "1000000", func(l limit) { l.Queue.Max = 1_000_001 }},
		{"rate", "queue.max_tokens", "-1", func(l limit) { l.Queue.MaxTokens = -1 }},
		{"rate", "queue.max_wait", "1h", func(l limit) { l.Queue.MaxWait = int64(2 * time.Hour) }},
		{"rate", "queue.weights", "1001", func(l limit) { l.Queue.Weights = make([]*logv1.Weight, 1001) }},
		{"rate", "queue.weights[0].client", "256", func(l limit) { l.Queue.Weights[0].Client = strings.Repeat("a", 257) }},
		{"rate", "queue.weights[0].weight", "1001", func(l limit) { l.Queue.Weights[0].Weight = 1001 }},
		{"rate", "queue.weights[1].client", "twice", func(l limit) {
			l.Queue.Weights = append(l.Queue.Weights, l.Queue.Weights[0])
		}},
		{"rate", "max_keys_per_client", "11: must be from 0 to the 10", func(l limit) { l.MaxKeysPerClient = 11 }},
		{"rate", "escrow", "24h", func(l limit) { l.Escrow = int64(25 * time.Hour) }},
		{"rate", "source.url", "2048", func(l limit) { l.Source.Url = strings.Repeat("a", 2049) }},
		{"rate", "source.verified_at", "YYYY-MM-DD", func(l limit) { l.Source.VerifiedAt = "2026-02-30" }},
		{"slots", "unlimited", "true", func(l limit) { l.Unlimited, l.Dimensions = true, nil }},
		{"slots", "target", "7500", func(l limit) { l.Target = 7_500 }},
		{"slots", "classes", "1", func(l limit) { l.Classes = good().Classes }},
		{"slots", "adaptive", "absent", func(l limit) { l.Adaptive = rateLimit().Adaptive }},
		{"slots", "calendar", "absent", func(l limit) { l.Calendar = quotaLimit().Calendar }},
		{"slots", "dimensions", "2: slots are one", func(l limit) { l.Dimensions = append(l.Dimensions, l.Dimensions[0]) }},
		{"slots", "dimensions[0].name", `"requests": must be "slots"`, func(l limit) { l.Dimensions[0].Name = "requests" }},
		{"slots", "dimensions[0].amount", "1: must be 0", func(l limit) { l.Dimensions[0].Amount = 1 }},
		{"slots", "dimensions[0].max_debt", "1: must be 0", func(l limit) { l.Dimensions[0].MaxDebt = 1 }},
		{"slots", "dimensions[0].max_open", "1: must be 0", func(l limit) { l.Dimensions[0].MaxOpen = 1 }},
		{"slots", "dimensions[0].burst", "-1", func(l limit) { l.Dimensions[0].Burst = -1 }},
		{"slots", "overrides[0].dimensions[0].amount", "5", func(l limit) { l.Overrides[0].Dimensions[0].Amount = 5 }},
		{"quota", "calendar", "none", func(l limit) { l.Calendar = nil }},
		{"quota", "calendar.period", "0", func(l limit) { l.Calendar.Period = 0 }},
		{"quota", "calendar.period", "4", func(l limit) { l.Calendar.Period = 4 }},
		{"quota", "calendar.timezone", `""`, func(l limit) { l.Calendar.Timezone = "" }},
		{"quota", "calendar.timezone", `"../x"`, func(l limit) { l.Calendar.Timezone = "../x" }},
		{"quota", "warn[0]", "0: must be from 1", func(l limit) { l.Warn[0] = 0 }},
		{"quota", "warn[1]", "8000: must be from 8001", func(l limit) { l.Warn[1] = 8_000 }},
		{"quota", "warn", "17", func(l limit) { l.Warn = make([]int64, 17) }},
		{"quota", "dimensions[1].amount", "1: must be 0", func(l limit) { l.Dimensions[1].Amount = 1 }},
		{"quota", "overrides[0].dimensions[0].amount", "5", func(l limit) { l.Overrides[0].Dimensions[0].Amount = 5 }},
	} {
		t.Run(tt.kind+" "+tt.field, func(t *testing.T) {
			t.Parallel()
			limit := kinds[tt.kind]()
			tt.change(limit)
			_, err := lineage.Shapes(limit)
			var field *lineage.FieldError
			if !errors.As(err, &field) || field.Field != tt.field || !strings.Contains(field.Problem, tt.says) {
				t.Errorf("%v, want an error of field %s that says %s", err, tt.field, tt.says)
			}
		})
	}
}

// TestA06ZeroSlotsAndZeroQuotasAreNone: zero is a number like others, and absent is
// none.
func TestA06ZeroSlotsAndZeroQuotasAreNone(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]*logv1.Limit{"slots": slotLimit(), "quota": quotaLimit()} {
		t.Run("A06_"+name, func(t *testing.T) {
			t.Parallel()
			none := proto.CloneOf(limit)
			none.Dimensions[0].Burst = 0
			shapes, err := lineage.Shapes(none)
			if err != nil || shapes[0].Burst() != 0 {
				t.Errorf("%v of it: %v", shapes, err)
			}
			none.Dimensions = nil
			if _, err := lineage.Shapes(none); err == nil {
				t.Error("absent was taken for zero")
			}
		})
	}
}

// TestSavedWindowsAndOverridesThatAreWrong: none of these can have been saved.
func TestSavedWindowsAndOverridesThatAreWrong(t *testing.T) {
	t.Parallel()
	quota := quotaLimit()
	quota.Overrides = append(quota.Overrides, proto.CloneOf(quota.GetOverrides()[0]))
	quota.Overrides[1].Value, quota.Overrides[1].Prefix = "one", false
	l, err := lineage.New(3, quota, 10)
	if err != nil {
		t.Fatal(err)
	}
	if l, err = l.Roll(0, 31*int64(24*time.Hour), 20); err != nil {
		t.Fatal(err)
	}
	last := func(s *logv1.SnapshotLimit) *logv1.SnapshotVersion { return s.GetVersions()[len(s.GetVersions())-1] }
	for name, change := range map[string]func(*logv1.SnapshotLimit){
		"a window that ends before":  func(s *logv1.SnapshotLimit) { last(s).Starts = last(s).GetEnds() + 1 },
		"a window before all time":   func(s *logv1.SnapshotLimit) { last(s).Starts = -1 },
		"another calendar":           func(s *logv1.SnapshotLimit) { last(s).Calendar.Timezone = "UTC" },
		"no calendar":                func(s *logv1.SnapshotLimit) { last(s).Calendar = nil },
		"a calendar of no zone":      func(s *logv1.SnapshotLimit) { last(s).Calendar.Timezone = "" },
		"another kind":               func(s *logv1.SnapshotLimit) { last(s).Dimensions[0].Kind = logv1.Kind_KIND_RATE },
		"no kind":                    func(s *logv1.SnapshotLimit) { last(s).Dimensions[0].Kind = 9 },
		"an override is missing":     func(s *logv1.SnapshotLimit) { last(s).Overrides = last(s).GetOverrides()[1:] },
		"an override is there twice": func(s *logv1.SnapshotLimit) { last(s).Overrides[1] = last(s).GetOverrides()[0] },
		"overrides are out of order": func(s *logv1.SnapshotLimit) {
			last(s).Overrides[0], last(s).Overrides[1] = last(s).GetOverrides()[1], last(s).GetOverrides()[0]
		},
		"an override of nothing":      func(s *logv1.SnapshotLimit) { last(s).Overrides[0].Value = "" },
		"an override of another key":  func(s *logv1.SnapshotLimit) { last(s).Overrides[0].Value = "two" },
		"an override that is removed": func(s *logv1.SnapshotLimit) { last(s).Overrides[0].Removed = true },
		"other numbers":               func(s *logv1.SnapshotLimit) { last(s).Overrides[0].Dimensions[0].Spec.Burst++ },
		"another dimension":           func(s *logv1.SnapshotLimit) { last(s).Overrides[0].Dimensions[0].Spec.Name = "x" },
		"too few dimensions":          func(s *logv1.SnapshotLimit) { last(s).Overrides[0].Dimensions = nil },
		"a bucket that overflows": func(s *logv1.SnapshotLimit) {
			last(s).Overrides[0].Dimensions[0].Pristine.Free = 1 << 62
		},
		"too many overrides": func(s *logv1.SnapshotLimit) {
			last(s).Overrides = make([]*logv1.SnapshotOverride, 5_000)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			saved := proto.CloneOf(l.Save())
			if _, err := lineage.Load(saved, 30); err != nil {
				t.Fatalf("unchanged: %v", err)
			}
			change(saved)
			if _, err := lineage.Load(saved, 30); err == nil {
				t.Error("it was loaded")
			}
		})
	}
}
