package bucket

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestConvertClasses(t *testing.T) {
	plain := mustShape(t, rate(10, time.Second, 10))
	two := mustShape(t, shared(10, 10, ClassSpec{6000, 6}, ClassSpec{2000, 2}))
	swapped := mustShape(t, shared(10, 10, ClassSpec{2000, 2}, ClassSpec{6000, 6}))
	narrow := mustShape(t, shared(10, 10, ClassSpec{6000, 3}, ClassSpec{2000, 2}))
	// used has 2 free tokens, 4 of live's and none of batch's own, which owes 3.
	used := func() Bucket {
		b := two.Full(0)
		b.Excess(two, batch, 7)
		b.Lower(two, 2)
		b.Raise(two, 2)
		return b
	}
	type parts struct{ free, first, firstDebt, second, secondDebt int64 }
	for name, c := range map[string]struct {
		to     *Shape
		origin []int
		want   parts
	}{
		"the_same_classes":                {two, []int{live, batch}, parts{2, 4, 0, 0, 3}},
		"their_order":                     {swapped, []int{batch, live}, parts{2, 0, 3, 4, 0}},
		"a_smaller_sub_burst_frees":       {narrow, []int{live, batch}, parts{3, 3, 0, 0, 3}},
		"a_class_gone_frees":              {two, []int{-1, batch}, parts{6, 0, 0, 0, 3}},
		"a_debt_gone_goes_to_the_first":   {two, []int{live, -1}, parts{2, 4, 3, 0, 0}},
		"all_renamed":                     {two, nil, parts{6, 0, 3, 0, 0}},
		"no_classes_any_more":             {plain, nil, parts{6, 0, 3, 0, 0}},
		"no_classes_but_the_debt_of_one":  {plain, []int{batch}, parts{6, 0, 3, 0, 0}},
		"the_same_class_twice_counts_one": {two, []int{live, live}, parts{2, 4, 3, 0, 0}},
		"a_class_that_never_was":          {two, []int{2, 1 << 30}, parts{6, 0, 3, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			b := used()
			b.Convert(two, c.to, c.origin)
			requireInRange(t, &b, c.to)
			got := parts{b.free, b.part(0).level, b.part(0).debt, b.part(1).level, b.part(1).debt}
			got = parts{
				got.free / c.to.unit, got.first / c.to.unit, got.firstDebt / c.to.unit,
				got.second / c.to.unit, got.secondDebt / c.to.unit,
			}
			if got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestConvertKeepsDebtAboveALowerBound(t *testing.T) {
	from := mustShape(t, Spec{Amount: 10, Interval: time.Second, Target: Whole, Burst: 10, MaxDebt: 100})
	to := mustShape(t, Spec{Amount: 10, Interval: time.Second, Target: Whole, Burst: 10, MaxDebt: 20})
	b := from.Empty(0)
	b.Excess(from, 0, 50)
	b.Convert(from, to, []int{0})
	if debt := b.Debt(to, 0); debt != 50 {
		t.Errorf("debt %d after lowering its bound, want 50", debt)
	}
	if beyond := b.Excess(to, 0, 7); beyond != 7 || b.Debt(to, 0) != 50 {
		t.Errorf("written off %d, debt %d, want 7, 50: no room for more", beyond, b.Debt(to, 0))
	}
}

// A debt of a coarse unit may not fit in a fine one. It stays as large as can
// be: it is never forgotten.
func TestConvertSaturatesDebt(t *testing.T) {
	from := mustShape(t, Spec{Amount: 1, Interval: 1, Target: Whole, Burst: 1, MaxDebt: MaxTokens})
	to := mustShape(t, Spec{Amount: 1, Interval: 24 * time.Hour, Target: Whole, Burst: 1})
	b := from.Empty(0)
	b.Excess(from, 0, MaxTokens)
	b.Convert(from, to, []int{0})
	if got := b.sub(0).debt; got != math.MaxInt64 {
		t.Errorf("debt %d units, want the largest number", got)
	}
}

func TestConvertGivesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from, to := mustShape(t, drawReal(t)), mustShape(t, drawReal(t))
		b := drawUsed(t, from)
		origin := rapid.SliceOfN(rapid.IntRange(-1, from.Classes()-1), 0, to.Classes()).Draw(t, "origin")
		before := b.Clone()
		b.Convert(from, to, origin)
		requireInRange(t, &b, to)
		requireNoGift(t, &before, from, &b, to)
		took := before.sub(0).level
		if got := Rescale(from, to, took); times(num(got), from.unit).Cmp(times(num(took), to.unit)) > 0 {
			t.Fatalf("%d units of 1/%d became %d of 1/%d", took, from.unit, got, to.unit)
		}
	})
}

// Applying the same limit again is no change at all.
func TestConvertToTheSameShape(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := drawReal(t)
		from, to := mustShape(t, spec), mustShape(t, spec)
		b := drawUsed(t, from)
		origin := make([]int, to.Classes())
		for i := range origin {
			origin[i] = i
		}
		before := b.Clone()
		b.Convert(from, to, origin)
		if !b.Equal(&before) {
			t.Fatalf("%+v became %+v", before, b)
		}
	})
}
