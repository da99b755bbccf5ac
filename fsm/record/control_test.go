package record_test

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/pace"
	"github.com/quorlease/quorlease/fsm/record"
)

const second = bucket.Instant(time.Second)

func aControl() record.Control {
	return record.Control{
		ID: record.ControlID{Limit: 7, Key: "k"}, From: 10 * second,
		Pace:      pace.Pace{Opens: 40 * second, Start: 50_000, Step: 47_500, Interval: 3 * time.Second},
		Decreased: 20 * second, Blocked: true, Reason: "slow_down", Client: "gw",
	}
}

// TestG9EveryFieldOfAControlCounts changes every field of a saved control: it comes
// back, and the state hash sees it.
func TestG9EveryFieldOfAControlCounts(t *testing.T) {
	t.Parallel()
	t.Run("G9", func(t *testing.T) {
		t.Parallel()
		c := aControl()
		saved := c.Save()
		seen := map[uint64]string{c.Sum(): "as it was"}
		fields := saved.ProtoReflect().Descriptor().Fields()
		for i := range fields.Len() {
			other, field := proto.CloneOf(saved), fields.Get(i)
			value := other.ProtoReflect().Get(field)
			switch n := value.Interface().(type) {
			case string:
				value = protoreflect.ValueOfString(n + "x")
			case int64:
				value = protoreflect.ValueOfInt64(n + 1)
			case uint32:
				value = protoreflect.ValueOfUint32(n + 1)
			case bool:
				value = protoreflect.ValueOfBool(!n)
			}
			other.ProtoReflect().Set(field, value)
			back, err := record.LoadControl(other, 60*second)
			if err != nil {
				t.Fatalf("%s: %v", field.Name(), err)
			}
			if !proto.Equal(back.Save(), other) {
				t.Errorf("%s: %v came back as %v", field.Name(), other, back.Save())
			}
			if as, twice := seen[back.Sum()]; twice {
				t.Errorf("%s is not in the digest: as %s", field.Name(), as)
			}
			seen[back.Sum()] = string(field.Name())
		}
	})
}

func TestLoadControlBelievesNothing(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*logv1.SnapshotControl){
		"from after now":      func(c *logv1.SnapshotControl) { c.From = int64(61 * second) },
		"decreased after now": func(c *logv1.SnapshotControl) { c.Decreased = int64(61 * second) },
		"from before time":    func(c *logv1.SnapshotControl) { c.From = -1 },
		"paused for two days": func(c *logv1.SnapshotControl) { c.PausedUntil = int64(2 * 24 * time.Hour) },
		"no pace":             func(c *logv1.SnapshotControl) { c.Start = 0 },
		"no step":             func(c *logv1.SnapshotControl) { c.Step = 0 },
		"no interval":         func(c *logv1.SnapshotControl) { c.Interval = 0 },
		"a reason of lines":   func(c *logv1.SnapshotControl) { c.Reason = "a\nb" },
	} {
		c := aControl()
		saved := c.Save()
		spoil(saved)
		if _, err := record.LoadControl(saved, 60*second); err == nil {
			t.Errorf("%s: was taken", name)
		}
	}
}

func TestWhenAControlIsOver(t *testing.T) {
	t.Parallel()
	c := aControl()
	if got := c.Due(); got != pace.Never {
		t.Errorf("blocked: due at %d, want never", got)
	}
	c.Blocked = false
	if got := c.Due(); got != 100*second {
		t.Errorf("a ramp: due at %d, want when it is whole", got)
	}
	c.Pace = pace.Pace{Opens: 20 * second, Start: pace.Whole}
	if got := c.Due(); got != 21*second {
		t.Errorf("emptied at 20 s: due at %d, want a second later", got)
	}
	for at, want := range map[bucket.Instant]bool{20 * second: true, 21*second - 1: true, 21 * second: false} {
		if got := c.Lowered(at); got != want {
			t.Errorf("lowered at %d: got %v", at, got)
		}
	}
}
