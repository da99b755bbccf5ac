package lineage_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/digest"
	"github.com/quorlease/quorlease/fsm/lineage"
)

func good() *logv1.Limit {
	return &logv1.Limit{
		Name: "api", Target: 10_000, Lease: int64(time.Second), MaxKeys: 1,
		Dimensions: []*logv1.Dimension{{Name: "requests", Amount: 1, Interval: int64(time.Second), Burst: 10}},
		Classes:    []*logv1.Class{{Name: "live", Share: 5_000, Burst: 5_000}},
	}
}

func TestLimitsThatCantBeUsed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, field string
		change      func(*logv1.Limit)
	}{
		{"no name", "name", func(l *logv1.Limit) { l.Name = "" }},
		{"long name", "name", func(l *logv1.Limit) { l.Name = strings.Repeat("a", 64) }},
		{"name with a slash", "name", func(l *logv1.Limit) { l.Name = "a/b" }},
		{"no dimension", "dimensions", func(l *logv1.Limit) { l.Dimensions = nil }},
		{"unlimited with dimensions", "dimensions", func(l *logv1.Limit) { l.Unlimited = true }},
		{"too many dimensions", "dimensions", func(l *logv1.Limit) {
			l.Dimensions = make([]*logv1.Dimension, 17)
		}},
		{"no such dimension", "dimensions[0].name", func(l *logv1.Limit) { l.Dimensions[0].Name = "Requests" }},
		{"dimension twice", "dimensions[1].name", func(l *logv1.Limit) {
			l.Dimensions = append(l.Dimensions, l.Dimensions[0])
		}},
		{"negative amount", "dimensions[0].amount", func(l *logv1.Limit) { l.Dimensions[0].Amount = -1 }},
		{"no interval", "dimensions[0].interval", func(l *logv1.Limit) { l.Dimensions[0].Interval = 0 }},
		{"no burst", "dimensions[0].burst", func(l *logv1.Limit) { l.Dimensions[0].Burst = 0 }},
		{"negative debt", "dimensions[0].max_debt", func(l *logv1.Limit) { l.Dimensions[0].MaxDebt = -1 }},
		{"negative max_open", "dimensions[0].max_open", func(l *logv1.Limit) { l.Dimensions[0].MaxOpen = -1 }},
		{"too many classes", "classes", func(l *logv1.Limit) { l.Classes = make([]*logv1.Class, 17) }},
		{"class without a name", "classes[0].name", func(l *logv1.Limit) { l.Classes[0].Name = "" }},
		{"class twice", "classes[1].name", func(l *logv1.Limit) { l.Classes = append(l.Classes, l.Classes[0]) }},
		{"share above all", "dimensions[0].classes[0].share", func(l *logv1.Limit) { l.Classes[0].Share = 10_001 }},
		{"class burst above all", "classes[0].burst", func(l *logv1.Limit) { l.Classes[0].Burst = 10_001 }},
		{"no target", "target", func(l *logv1.Limit) { l.Target = 0 }},
		{"target above all", "target", func(l *logv1.Limit) { l.Target = 10_001 }},
		{"no lease", "lease", func(l *logv1.Limit) { l.Lease = 0 }},
		{"long lease", "lease", func(l *logv1.Limit) { l.Lease = int64(25 * time.Hour) }},
		{"no keys", "max_keys", func(l *logv1.Limit) { l.MaxKeys = 0 }},
		{"no mode", "on_quorum_loss", func(l *logv1.Limit) { l.OnQuorumLoss = 4 }},
		{"negative fallback", "fallback_share", func(l *logv1.Limit) { l.FallbackShare = proto.Int64(-1) }},
		{"fallback above all", "fallback_share", func(l *logv1.Limit) { l.FallbackShare = proto.Int64(10_001) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			limit := good()
			tt.change(limit)
			_, err := lineage.Shapes(limit)
			var field *lineage.FieldError
			if !errors.As(err, &field) || field.Field != tt.field {
				t.Errorf("%v, want an error of field %s", err, tt.field)
			}
			if _, err := lineage.New(1, limit, 0); err == nil {
				t.Error("a lineage began with it")
			}
		})
	}
}

// TestSubBurstsAreWholeTokens: a class's part of the burst is rounded down,
// without overflow.
func TestSubBurstsAreWholeTokens(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ burst, hundredths, want int64 }{
		{10, 5_000, 5}, {3, 5_000, 1}, {1, 9_999, 0}, {9_999, 3_333, 3_332}, {1 << 52, 2_500, 1 << 50},
	} {
		limit := good()
		limit.Dimensions[0].Burst, limit.Dimensions[0].Interval = tt.burst, 1
		limit.Classes[0].Burst = tt.hundredths
		shapes, err := lineage.Shapes(limit)
		if err != nil {
			// The arithmetic may not be exact with so large a burst.
			if tt.burst < 1<<40 {
				t.Errorf("burst %d: %v", tt.burst, err)
			}
			continue
		}
		if got := shapes[0].SubBurst(0); got != tt.want {
			t.Errorf("%d of %d: %d, want %d", tt.hundredths, tt.burst, got, tt.want)
		}
	}
}

// whole has every field, whatever a limit may have at once.
func whole() *logv1.Limit {
	l := good()
	l.OnQuorumLoss, l.FallbackShare = logv1.OnQuorumLoss_ON_QUORUM_LOSS_SHARE, proto.Int64(1)
	l.Calendar = &logv1.Calendar{Period: logv1.Calendar_PERIOD_DAY, Timezone: "UTC"}
	l.Adaptive = &logv1.Adaptive{Decrease: 5_000, Step: 500, Interval: int64(time.Second), Floor: 1_000}
	l.Match = []*logv1.Match{{Attribute: "model", Value: "gpt-"}, {Attribute: "tenant", Prefix: true}}
	l.Per = []string{"tenant", "team"}
	l.Overrides = []*logv1.Override{{Value: "big", Dimensions: []*logv1.Dimension{proto.CloneOf(l.GetDimensions()[0])}}}
	l.Queue = &logv1.Queue{Max: 1, MaxTokens: 2, MaxWait: 3, Weights: []*logv1.Weight{{Client: "a", Weight: 1}}}
	l.Warn = []int64{8_000, 9_000}
	l.Source = &logv1.Source{Url: "https://example.com", VerifiedAt: "2026-10-22"}
	l.Ramp, l.MaxKeysPerClient, l.Escrow = 1, 1, 1
	return l
}

// TestG9EveryFieldOfALimitCounts changes every field of a limit: the digest, and
// so the state hash, has to see it.
func TestG9EveryFieldOfALimitCounts(t *testing.T) {
	t.Parallel()
	sum := func(limit *logv1.Limit) uint64 {
		s := digest.New(1)
		lineage.DigestLimit(&s, limit)
		return s.Value()
	}
	t.Run("G9", func(t *testing.T) {
		t.Parallel()
		before, limit := sum(whole()), whole()
		eachField(limit.ProtoReflect(), func(field protoreflect.FieldDescriptor) {
			if sum(limit) == before {
				t.Errorf("%s is not in the digest", field.FullName())
			}
		})
		if sum(limit) != before {
			t.Error("the limit is not as it was")
		}
		if sum(nil) == sum(good()) {
			t.Error("no limit has the digest of one")
		}
	})
	t.Run("T52_a_share_of_0_is_not_an_absent_one", func(t *testing.T) {
		t.Parallel()
		none, zero := good(), good()
		none.OnQuorumLoss = logv1.OnQuorumLoss_ON_QUORUM_LOSS_SHARE
		zero.OnQuorumLoss, zero.FallbackShare = none.GetOnQuorumLoss(), proto.Int64(0)
		if sum(none) == sum(zero) {
			t.Error("a share of 0 has the digest of none")
		}
	})
	t.Run("limits of before keep their digest", func(t *testing.T) {
		t.Parallel()
		// It was worked out before there were slots and quotas.
		if got := sum(good()); got != 0xaa2d06e0221c6987 {
			t.Errorf("%#x", got)
		}
	})
}

// eachField gives every field of the message, and of what is in it, another value,
// calls changed, and puts it back.
func eachField(message protoreflect.Message, changed func(protoreflect.FieldDescriptor)) {
	fields := message.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		had, value := message.Has(field), message.Get(field)
		switch {
		case field.IsList() && field.Message() != nil:
			for at := range value.List().Len() {
				eachField(value.List().Get(at).Message(), changed)
			}
			value = copied(message, field)
		case field.IsList():
			value = copied(message, field)
		case field.Message() != nil:
			eachField(value.Message(), changed)
		}
		if field.Message() != nil || field.IsList() {
			message.Clear(field)
		} else {
			message.Set(field, other(value, field))
		}
		changed(field)
		if message.Clear(field); had {
			message.Set(field, value)
		}
	}
}

// copied is a list that stays as it is when the message is changed.
func copied(message protoreflect.Message, field protoreflect.FieldDescriptor) protoreflect.Value {
	list := message.NewField(field)
	for at := range message.Get(field).List().Len() {
		list.List().Append(message.Get(field).List().Get(at))
	}
	return list
}

// other is another value than the field has.
func other(value protoreflect.Value, field protoreflect.FieldDescriptor) protoreflect.Value {
	switch field.Kind() {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(value.String() + "x")
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(!value.Bool())
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(value.Enum() + 1)
	default:
		return protoreflect.ValueOfInt64(value.Int() + 1)
	}
}

// TestSavedLineagesThatAreWrong: none of these can have been saved.
func TestSavedLineagesThatAreWrong(t *testing.T) {
	t.Parallel()
	l, err := lineage.New(3, good(), 10)
	if err != nil {
		t.Fatal(err)
	}
	changed := good()
	changed.Dimensions[0].Burst = 20
	if l, err = l.Change(changed, 20); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*logv1.SnapshotLimit){
		"no number":            func(s *logv1.SnapshotLimit) { s.Id = 0 },
		"no name":              func(s *logv1.SnapshotLimit) { s.Name = "" },
		"another name":         func(s *logv1.SnapshotLimit) { s.Limit.Name = "other" },
		"a limit that is none": func(s *logv1.SnapshotLimit) { s.Limit.Lease = 0 },
		"no versions":          func(s *logv1.SnapshotLimit) { s.Versions = nil },
		"a gap":                func(s *logv1.SnapshotLimit) { s.Versions[1].Number++ },
		"numbers at the end":   func(s *logv1.SnapshotLimit) { s.Versions[0].Number = 1<<32 - 1 },
		"from the future":      func(s *logv1.SnapshotLimit) { s.Versions[1].Since = 31 },
		"backwards":            func(s *logv1.SnapshotLimit) { s.Versions[1].Since = 9 },
		"deleted and there":    func(s *logv1.SnapshotLimit) { s.Deleted = 5 },
		"a new dimension":      func(s *logv1.SnapshotLimit) { s.Versions[1].Dimensions[0].Id = 2 },
		"no dimension":         func(s *logv1.SnapshotLimit) { s.Versions[1].Dimensions[0].Spec = nil },
		"a dimension twice": func(s *logv1.SnapshotLimit) {
			s.Versions[1].Dimensions = append(s.Versions[1].Dimensions, s.Versions[1].Dimensions[0])
		},
		"a dimension that is not configured": func(s *logv1.SnapshotLimit) { s.Limit.Dimensions[0].Name = "tokens" },
		"a removed one that is configured":   func(s *logv1.SnapshotLimit) { s.Versions[1].Dimensions[0].Until = 99 },
		"a rate that is none":                func(s *logv1.SnapshotLimit) { s.Versions[0].Dimensions[0].Spec.Interval = 0 },
		"a pristine bucket of the future": func(s *logv1.SnapshotLimit) {
			s.Versions[1].Dimensions[0].Pristine.Last = 31
		},
		"a pristine bucket that overflows": func(s *logv1.SnapshotLimit) {
			s.Versions[1].Dimensions[0].Pristine.Free = 1 << 62
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
