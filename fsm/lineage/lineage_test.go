package lineage_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/digest"
	"github.com/quorlease/quorlease/fsm/lineage"
)

func pick[T any](random *rand.Rand, from ...T) T { return from[random.IntN(len(from))] }

// randomLimit has one to three dimensions and up to two classes.
func randomLimit(random *rand.Rand) *logv1.Limit {
	limit := &logv1.Limit{
		Name: "api", Target: pick(random, int64(10_000), 7_500), Lease: int64(time.Second), MaxKeys: 1,
	}
	for _, name := range []string{"requests", "tokens", "slots"} {
		if random.IntN(4) == 0 && (name != "requests" || random.IntN(4) == 0) {
			continue
		}
		limit.Dimensions = append(limit.Dimensions, &logv1.Dimension{
			Name: name, Amount: pick(random, int64(0), 1, 7), Interval: int64(pick(random, time.Second, time.Minute)),
			Burst: pick(random, int64(2), 10, 50), MaxDebt: pick(random, int64(0), 10), MaxOpen: random.Int64N(3),
		})
	}
	if len(limit.GetDimensions()) == 0 {
		limit.Unlimited = true
	}
	if random.IntN(2) == 0 {
		limit.Classes = []*logv1.Class{{Name: "live", Share: 5_000, Burst: 5_000}, {Name: "batch", Share: 1_000}}
	}
	return limit
}

// TestLazyIsEager: a key that passes every change when it happens, and one that
// passes them all in the end, hold the same (T13).
func TestLazyIsEager(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		t.Run(fmt.Sprintf("T13_seed_%d", seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 1))
			l, err := lineage.New(1, randomLimit(random), 0)
			if err != nil {
				t.Fatal(err)
			}
			lazy := drain(l, l.Now().Fresh(0))
			eager := clone(lazy)
			begin, now := l.Now().Number, bucket.Instant(0)
			for range 12 {
				now += bucket.Instant(random.Int64N(int64(20 * time.Second)))
				passed := l.Now().Number
				limit := randomLimit(random)
				if random.IntN(5) == 0 {
					limit = nil
				}
				if l, err = l.Change(limit, now); err != nil {
					t.Fatal(err)
				}
				eager = l.Pass("", eager, passed)
				if random.IntN(4) == 0 {
					passed = l.Now().Number
					l = l.Forget(now)
					eager = l.Pass("", eager, passed)
				}
				now += bucket.Instant(random.Int64N(int64(5 * time.Second)))
				advance(l, eager, now)
			}
			lazy = l.Pass("", lazy, begin)
			advance(l, lazy, now)
			for i := range l.Now().Dimensions {
				if !lazy[i].Bucket.Equal(&eager[i].Bucket) || lazy[i].Open != eager[i].Open {
					t.Errorf("dimension %d: lazy %+v, eager %+v", i, lazy[i], eager[i])
				}
				fresh := l.Now().Dimensions[i].Untouched(now)
				shape := l.Now().Dimensions[i].Shape
				if lazy[i].Bucket.Level(shape) > fresh.Level(shape) {
					t.Errorf("T14: %d tokens, a key never seen has %d", lazy[i].Bucket.Level(shape), fresh.Level(shape))
				}
			}
		})
	}
}

// drain takes half of every bucket and marks something of it as open.
func drain(l *lineage.Lineage, held []lineage.Held) []lineage.Held {
	for i := range l.Now().Dimensions {
		held[i].Bucket.Lower(l.Now().Dimensions[i].Shape, l.Now().Dimensions[i].Spec.GetBurst()/2+1)
		held[i].Open = int64(i + 1)
	}
	return held
}

func clone(held []lineage.Held) []lineage.Held {
	c := slices.Clone(held)
	for i := range c {
		c[i].Bucket = held[i].Bucket.Clone()
	}
	return c
}

func advance(l *lineage.Lineage, held []lineage.Held, now bucket.Instant) {
	for i := range l.Now().Dimensions {
		held[i].Bucket.Advance(l.Now().Dimensions[i].Shape, now)
	}
}

// TestG9SavedLineagesAreTheSame: what was saved and loaded has the same digest,
// and carries buckets alike.
func TestG9SavedLineagesAreTheSame(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		t.Run(fmt.Sprintf("G9_seed_%d", seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 2))
			l, err := lineage.New(7, randomLimit(random), 5)
			if err != nil {
				t.Fatal(err)
			}
			begin := l.Now().Number
			held := drain(l, l.Now().Fresh(5))
			now := bucket.Instant(5)
			for range 6 {
				now += bucket.Instant(time.Second)
				if l, err = l.Change(randomLimit(random), now); err != nil {
					t.Fatal(err)
				}
			}
			loaded, err := lineage.Load(proto.CloneOf(l.Save()), now)
			if err != nil {
				t.Fatal(err)
			}
			if sumOf(loaded) != sumOf(l) {
				t.Errorf("digest %016x, want %016x", sumOf(loaded), sumOf(l))
			}
			want, got := l.Pass("", clone(held), begin), loaded.Pass("", clone(held), begin)
			for i := range want {
				if !got[i].Bucket.Equal(&want[i].Bucket) || got[i].Open != want[i].Open {
					t.Errorf("dimension %d: %+v, want %+v", i, got[i], want[i])
				}
			}
			if loaded.ForgetAt() != l.ForgetAt() || loaded.Now().FullAt() != l.Now().FullAt() {
				t.Errorf("forget at %d and full at %d, want %d and %d",
					loaded.ForgetAt(), loaded.Now().FullAt(), l.ForgetAt(), l.Now().FullAt())
			}
		})
	}
}

func sumOf(l *lineage.Lineage) uint64 {
	sum := digest.New(1)
	l.Digest(&sum)
	return sum.Value()
}

// TestUnchangedArithmeticMakesNoVersion: what no bucket has to pass is no
// version, and a deletion is none either.
func TestUnchangedArithmeticMakesNoVersion(t *testing.T) {
	t.Parallel()
	limit := &logv1.Limit{
		Name: "api", Target: 10_000, Lease: int64(time.Second), MaxKeys: 1,
		Dimensions: []*logv1.Dimension{{Name: "requests", Amount: 1, Interval: int64(time.Second), Burst: 10}},
	}
	l, err := lineage.New(1, limit, 0)
	if err != nil {
		t.Fatal(err)
	}
	other := proto.CloneOf(limit)
	other.Lease, other.Dimensions[0].MaxOpen = int64(time.Minute), 5
	for _, change := range []*logv1.Limit{other, nil, other} {
		if l, err = l.Change(change, 50); err != nil {
			t.Fatal(err)
		}
		if len(l.Versions) != 1 {
			t.Fatalf("%d versions after %v, want 1", len(l.Versions), change)
		}
	}
	if open := l.Now().Dimensions[0].Spec.GetMaxOpen(); open != 5 {
		t.Errorf("max_open %d, want 5", open)
	}
	other = proto.CloneOf(other)
	other.Dimensions[0].Burst = 11
	if l, err = l.Change(other, 60); err != nil || len(l.Versions) != 2 {
		t.Errorf("%d versions, %v, want 2", len(l.Versions), err)
	}
}

// TestForgettingDimensions: a removed dimension is remembered for a day, and
// until a bucket of it that is as deep in debt as may be is full again.
func TestForgettingDimensions(t *testing.T) {
	t.Parallel()
	limit := func(amount int64, names ...string) *logv1.Limit {
		l := &logv1.Limit{Name: "api", Target: 10_000, Lease: int64(time.Second), MaxKeys: 1}
		for _, name := range names {
			l.Dimensions = append(l.Dimensions, &logv1.Dimension{
				Name: name, Amount: amount, Interval: int64(time.Hour), Burst: 30, MaxDebt: 10,
			})
		}
		return l
	}
	for _, tt := range []struct {
		amount int64
		want   bucket.Instant
	}{
		{1, bucket.Instant(40 * time.Hour)},
		{1000, lineage.Memory},
		{0, lineage.Never},
	} {
		l, err := lineage.New(1, limit(tt.amount, "requests", "tokens"), 0)
		if err != nil {
			t.Fatal(err)
		}
		if l, err = l.Change(limit(tt.amount, "requests"), 0); err != nil {
			t.Fatal(err)
		}
		if at := l.ForgetAt(); at != tt.want {
			t.Errorf("%d an hour: forgotten at %v, want %v", tt.amount, time.Duration(at), time.Duration(tt.want))
		}
		if tt.want == lineage.Never {
			continue
		}
		if l = l.Forget(tt.want); len(l.Now().Dimensions) != 1 || l.ForgetAt() != lineage.Never {
			t.Errorf("%d an hour: %d dimensions are left, want 1", tt.amount, len(l.Now().Dimensions))
		}
		// It comes back as another one, and full.
		if l, err = l.Change(limit(tt.amount, "requests", "tokens"), tt.want); err != nil {
			t.Fatal(err)
		}
		if d := l.Now().Dimensions[1]; d.ID != 3 || d.Pristine.Level(d.Shape) != 30 {
			t.Errorf("it comes back as %d with %d tokens", d.ID, d.Pristine.Level(d.Shape))
		}
	}
}

// TestRemovedDimensionsAreBounded: names that come and go are remembered up to a
// number, and then the change is refused.
func TestRemovedDimensionsAreBounded(t *testing.T) {
	t.Parallel()
	var l *lineage.Lineage
	for i := range 100 {
		limit := &logv1.Limit{
			Name: "api", Target: 10_000, Lease: int64(time.Second), MaxKeys: 1, Dimensions: []*logv1.Dimension{
				{Name: fmt.Sprint("d", i), Amount: 1, Interval: 1, Burst: 1},
			},
		}
		next, err := lineage.New(1, limit, 0)
		if l != nil {
			next, err = l.Change(limit, 0)
		}
		if err != nil {
			var field *lineage.FieldError
			if i != 64 || !errors.As(err, &field) || !strings.Contains(err.Error(), "at most 64") {
				t.Errorf("change %d: %v", i, err)
			}
			return
		}
		l = next
	}
	t.Error("a hundred dimensions are remembered")
}
