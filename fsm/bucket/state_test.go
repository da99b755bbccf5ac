package bucket

import (
	"math"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"
)

func TestBucketIsSmall(t *testing.T) {
	if got := unsafe.Sizeof(Bucket{}); got > 40 {
		t.Errorf("a bucket has %d bytes, want at most 40", got)
	}
	s := mustShape(t, rate(10, time.Second, 10))
	b := s.Full(0)
	b.Excess(s, 0, 20)
	if b.subs == nil {
		t.Error("a debt has no place")
	}
	if b.Advance(s, Instant(time.Second)); b.subs != nil {
		t.Error("a debt that is paid keeps its place")
	}
}

func TestCloneIsDeep(t *testing.T) {
	s := mustShape(t, shared(10, 10, ClassSpec{6000, 6}, ClassSpec{}))
	b := s.Full(0)
	before, kept := b.Clone(), s.Full(0)
	mustTake(t, s, &b, live, 10)
	if !before.Equal(&kept) || before.Equal(&b) {
		t.Errorf("after a take from the original the clone is %+v, want %+v", before, kept)
	}
}

// walked is what Walk shows.
func walked(b *Bucket) (numbers []int64) {
	b.Walk(func(n int64) { numbers = append(numbers, n) })
	return numbers
}

func equalNumbers(a, b []int64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func TestStateWalkAndEqualAgree(t *testing.T) {
	t.Run("zero_parts_are_no_parts", func(t *testing.T) {
		s := mustShape(t, shared(10, 10, ClassSpec{6000, 6}, ClassSpec{}))
		none := s.Empty(7)
		zeros := s.Empty(7)
		zeros.grow(s)
		if !none.Equal(&zeros) || !zeros.Equal(&none) || !equalNumbers(walked(&none), walked(&zeros)) {
			t.Errorf("%+v differs from %+v", none, zeros)
		}
		if st := zeros.State(); st.Levels != nil || st.Debts != nil {
			t.Errorf("state %+v of an empty bucket, want no parts", st)
		}
	})
	t.Run("any_two", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			s := mustShape(t, drawReal(t))
			a := drawUsed(t, s)
			b := a.Clone()
			if rapid.Bool().Draw(t, "differ") {
				disturb(t, s, &b)
			}
			if same := equalNumbers(walked(&a), walked(&b)); same != a.Equal(&b) || same != b.Equal(&a) {
				t.Fatalf("%+v and %+v: equal %v, walked alike %v", a, b, a.Equal(&b), same)
			}
			saved, err := FromState(s, b.State())
			if err != nil || !saved.Equal(&b) || !equalNumbers(walked(&saved), walked(&b)) {
				t.Fatalf("FromState(State()) = %+v, %v, want %+v", saved, err, b)
			}
		})
	})
}

func TestFromStateRefusesWhatCannotBe(t *testing.T) {
	s := mustShape(t, shared(1e9, 10, ClassSpec{5000, 6}, ClassSpec{2500, 3}))
	if s.Unit() != 4 {
		t.Fatalf("%d units in a token, want 4", s.Unit())
	}
	for _, c := range []struct {
		state State
		want  string
	}{
		{State{Free: 4, Levels: []int64{24, 12}, Debts: []int64{0, math.MaxInt64}}, ""},
		{State{Free: 40}, ""},
		{State{Last: -1}, "last -1: must not be negative"},
		{State{Free: -1}, "free -1: must be from 0 to 40 units"},
		{State{Free: 41}, "free 41: must be from 0 to 40 units"},
		{State{Levels: []int64{0}}, "levels of 1 classes, but the limit has 2"},
		{State{Debts: []int64{0, 0, 0}}, "debts of 3 classes, but the limit has 2"},
		{State{Levels: []int64{25, 0}}, "levels[0] 25: must be from 0 to 24 units"},
		{State{Levels: []int64{0, -1}}, "levels[1] -1: must be from 0 to 12 units"},
		{State{Free: 10, Levels: []int64{24, 7}}, "levels[1] 7: must be from 0 to 6 units"},
		{State{Debts: []int64{-1, 0}}, "debts[0] -1: must be from 0 to 9223372036854775807 units"},
	} {
		_, err := FromState(s, c.state)
		if got := errorText(err); got != c.want {
			t.Errorf("FromState(%+v):\ngot  %s\nwant %s", c.state, got, c.want)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestWhatIsShown(t *testing.T) {
	s := mustShape(t, shared(10, 10, ClassSpec{6000, 6}, ClassSpec{}))
	b := s.Full(0)
	mustTake(t, s, &b, live, 3)
	b.Excess(s, batch, 5)
	b.Advance(s, Instant(50*ms))
	// live has 3 and a third of a token's refill, batch owes 1 less a fifth.
	if level, own, debt := b.Level(s), b.ClassLevel(s, live), b.Debt(s, batch); level != 3 || own != 3 || debt != 1 {
		t.Errorf("level %d, live %d, debt %d, want 3, 3, 1", level, own, debt)
	}
	if l, c := b.Available(s, live), b.Available(s, batch); l != 3 || c != 0 {
		t.Errorf("available %d and %d, want 3 and 0 for a class in debt", l, c)
	}
	if got := b.Remaining(s); got != 2 {
		t.Errorf("remaining %d, want 2 (3.3 less 0.8)", got)
	}
	if b.Last() != Instant(50*ms) {
		t.Errorf("last %d, want 50 ms", b.Last())
	}
}

func TestFullAtNeedsARate(t *testing.T) {
	s := mustShape(t, rate(0, time.Second, 5))
	b := s.Full(7)
	if at, ok := b.FullAt(s); !ok || at != 7 {
		t.Errorf("a full bucket is full at %d, %v, want now", at, ok)
	}
	b.Excess(s, 0, 9)
	b.Raise(s, 5)
	if at, ok := b.FullAt(s); ok {
		t.Errorf("a full bucket with a debt that nothing pays is free of it at %d", at)
	}
	b.Reset(s)
	mustTake(t, s, &b, 0, 1)
	if at, ok := b.FullAt(s); ok {
		t.Errorf("a bucket that nothing refills is full at %d", at)
	}
}

// Debts that no limit allows, but that a damaged or merged state may have, are
// still added up.
func TestRemainingDoesNotOverflow(t *testing.T) {
	classes := make([]ClassSpec, MaxClasses)
	s := mustShape(t, Spec{Amount: 1, Interval: 1, Target: Whole, Burst: 10, Classes: classes})
	debts := make([]int64, MaxClasses)
	for i := range debts {
		debts[i] = math.MaxInt64
	}
	b, err := FromState(s, State{Debts: debts})
	if err != nil {
		t.Fatal(err)
	}
	if got := b.Remaining(s); got != math.MinInt64 {
		t.Errorf("remaining %d, want the smallest number", got)
	}
	if wait, isNever := b.RetryAfter(s, MaxClasses-1, 1); !isNever {
		t.Errorf("retry after %v, want never: time ends before that", wait)
	}
	if at, ok := b.FullAt(s); ok {
		t.Errorf("full at %d, want never", at)
	}
}
