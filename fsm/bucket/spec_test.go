package bucket

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

func TestSpecErrorNamesFieldValueAndBound(t *testing.T) {
	good := func() Spec {
		return Spec{
			Amount: 1000, Interval: time.Minute, Target: 7500, Burst: 200, MaxDebt: 100,
			Classes: []ClassSpec{{Share: 6000, SubBurst: 100}, {Share: 4000, SubBurst: 40}},
		}
	}
	if _, err := NewShape(good()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		change func(*Spec)
		want   string
	}{
		{func(s *Spec) { s.Amount = -1 }, "amount -1: must be from 0 to 9007199254740992"},
		{func(s *Spec) { s.Amount = MaxTokens + 1 }, "amount 9007199254740993: must be from 0 to 9007199254740992"},
		{func(s *Spec) { s.Interval = 0 }, "interval 0s: must be positive"},
		{func(s *Spec) { s.Interval = -time.Second }, "interval -1s: must be positive"},
		{func(s *Spec) { s.Target = 0 }, "target 0: must be from 1 to 10000"},
		{func(s *Spec) { s.Target = 10001 }, "target 10001: must be from 1 to 10000"},
		{func(s *Spec) { s.Burst = 0 }, "burst 0: must be from 1 to 9007199254740992"},
		{func(s *Spec) { s.Amount, s.Burst = 0, -1 }, "burst -1: must be from 0 to 9007199254740992"},
		{func(s *Spec) { s.Burst = math.MaxInt64 }, "burst 9223372036854775807: must be from 1 to 9007199254740992"},
		{func(s *Spec) { s.MaxDebt = -1 }, "max_debt -1: must be from 0 to 9007199254740992"},
		{func(s *Spec) { s.Classes[1].Share = -1 }, "classes[1].share -1: must be from 0 to 10000"},
		{
			func(s *Spec) { s.Classes[1].Share = 4001 },
			"classes[1].share 4001: with those before it 10001, which is more than 10000",
		},
		{func(s *Spec) { s.Classes[0].SubBurst = -1 }, "classes[0].burst -1: must be from 0 to 9007199254740992"},
		{
			func(s *Spec) { s.Classes[1].SubBurst = 101 },
			"classes[1].burst 101: with those before it 201, which is more than the burst of 200",
		},
		{
			func(s *Spec) { s.Classes = append(s.Classes, ClassSpec{SubBurst: 1}) },
			"classes[2].burst 1: must be 0 where the share is 0",
		},
		{
			func(s *Spec) { s.Classes[1].SubBurst = 0; s.Classes[0].SubBurst = 200 },
			"classes[1] has nothing to take: the other classes keep 200 of the burst of 200 for themselves",
		},
		{func(s *Spec) { s.Classes = make([]ClassSpec, 17) }, "classes 17: must be at most 16"},
		{
			func(s *Spec) { *s = rate(1_000_003, 24*time.Hour, 1_000_003) },
			"burst 1000003: too large to be counted exactly at 1000003 in 24h0m0s with this target and these " +
				"shares; choose a rounder rate, or at most 106751",
		},
		{
			func(s *Spec) { *s = rate(1_000_003, 24*time.Hour, 10); s.MaxDebt = 106_752 },
			"max_debt 106752: too large to be counted exactly at 1000003 in 24h0m0s with this target and these " +
				"shares; choose a rounder rate, or at most 106751",
		},
		{
			func(s *Spec) { *s = Spec{Amount: 1, Interval: math.MaxInt64, Target: 1, Burst: 1} },
			"interval 2562047h47m16.854775807s: too long to be counted exactly at an amount of 1 with this target " +
				"and these shares; choose a rounder rate",
		},
		{
			func(s *Spec) { *s = Spec{Amount: MaxTokens - 1, Interval: 1, Target: 9999, Burst: 1} },
			"amount 9007199254740991 in 1ns: too large to be counted exactly with these shares; " +
				"choose rounder shares or a smaller amount",
		},
	} {
		spec := good()
		c.change(&spec)
		_, err := NewShape(spec)
		if err == nil || err.Error() != c.want {
			t.Errorf("NewShape(%+v):\ngot  %v\nwant %s", spec, err, c.want)
			continue
		}
		var wrong *SpecError
		if !errors.As(err, &wrong) || !strings.HasPrefix(c.want, wrong.Field+" ") {
			t.Errorf("NewShape(%+v): %#v, want a SpecError with its field", spec, err)
		}
	}
}

// The largest numbers that fit leave no room for one more unit.
func TestLargestSpecsAreExact(t *testing.T) {
	for _, spec := range []Spec{
		rate(1_000_003, 24*time.Hour, 106_751),
		rate(MaxTokens, MaxTokens, MaxTokens),
		rate(MaxTokens, 1, MaxTokens),
		{Amount: 1, Interval: math.MaxInt64, Target: Whole, Burst: 1, MaxDebt: 1},
	} {
		s := mustShape(t, spec)
		b := s.Full(0)
		mustTake(t, s, &b, 0, spec.Burst)
		b.Excess(s, 0, math.MaxInt64)
		if got, want := b.Remaining(s), -spec.MaxDebt; got != want {
			t.Errorf("%+v: remaining %d, want %d", spec, got, want)
		}
		b.Advance(s, math.MaxInt64)
		b.Refund(s, 0, spec.Burst+spec.MaxDebt, 0)
		if full := s.Full(math.MaxInt64); !b.Equal(&full) {
			t.Errorf("%+v: %+v at the end of time, want %+v", spec, b, full)
		}
	}
}

func TestShapeInTokens(t *testing.T) {
	s := mustShape(t, Spec{
		Amount: 1000, Interval: time.Minute, Target: 7500, Burst: 200, MaxDebt: 90,
		Classes: []ClassSpec{{Share: 6000, SubBurst: 100}, {Share: 1000, SubBurst: 40}, {}},
	})
	if s.Burst() != 200 || s.MaxDebt() != 90 || s.Classes() != 3 || s.IsZero() {
		t.Errorf("burst %d, max debt %d, classes %d, zero %v", s.Burst(), s.MaxDebt(), s.Classes(), s.IsZero())
	}
	for class, want := range [][2]int64{{100, 160}, {40, 100}, {0, 60}} {
		if got := [2]int64{s.SubBurst(class), s.EffectiveBurst(class)}; got != want {
			t.Errorf("class %d: sub-burst and effective burst %v, want %v", class, got, want)
		}
	}
	for d, want := range map[time.Duration]int64{
		-time.Second: 0, 0: 0, time.Second: 12, time.Minute: 750, 80 * ms: 1, 80*ms - 1: 0,
		math.MaxInt64: 115_292_150_460,
	} {
		if got := s.TokensIn(d); got != want {
			t.Errorf("TokensIn(%v) = %d, want %d", d, got, want)
		}
	}
	fast := mustShape(t, rate(MaxTokens, 1, 1))
	if got := fast.TokensIn(time.Hour); got != math.MaxInt64 {
		t.Errorf("TokensIn(1h) = %d at the fastest rate, want the largest number", got)
	}
	// Without a rate no sub-bucket is ever refilled, so that any is as good.
	mustShape(t, Spec{Interval: 1, Target: Whole, Burst: 9, Classes: []ClassSpec{{SubBurst: 8}, {}}})
	plain := mustShape(t, rate(0, time.Second, 0))
	if plain.Classes() != 1 || plain.SubBurst(0) != 0 || !plain.IsZero() || plain.Unit() != 1 {
		t.Errorf("the unnamed class of a zero limit: %+v", plain)
	}
}
