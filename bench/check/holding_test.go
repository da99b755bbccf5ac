package check

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestSpendable(t *testing.T) {
	t.Parallel()
	s := func(seconds float64) int64 { return int64(seconds * 1e9) }
	for name, row := range map[string]struct {
		list []Held
		want Excess
	}{
		"nothing":                    {nil, Excess{}},
		"G2_the_burst":               {[]Held{{0, s(9), 10}}, Excess{}},
		"G2_one_more_at_once":        {[]Held{{0, s(9), 10}, {0, s(9), 1}}, Excess{1, time.Second}},
		"G2_what_refilled_meanwhile": {[]Held{{0, 0, 10}, {s(1), s(1), 1}}, Excess{}},
		// Both can be spent at 5 s.
		"G2_a_lease_is_spent_late":      {[]Held{{0, s(5), 10}, {s(5), s(5), 5}}, Excess{5, 5 * time.Second}},
		"G2_one_that_has_ended_is_gone": {[]Held{{0, s(4), 10}, {s(5), s(5), 5}}, Excess{4, 4 * time.Second}},
		"G2_half_a_token_counts":        {[]Held{{0, 0, 10}, {s(0.5), s(0.5), 1}}, Excess{1, 500 * time.Millisecond}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Spendable(perSecond(1, 10), row.list); got != row.want {
				t.Errorf("%+v, want %+v", got, row.want)
			}
		})
	}
}

// TestSpendableIsTheWorst: no way to spend what is held, in no stretch, is above what it
// says, and one is as much.
func TestSpendableIsTheWorst(t *testing.T) {
	t.Parallel()
	const second = int64(time.Second)
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Held {
			from := rapid.Int64Range(0, 8).Draw(t, "from")
			return Held{
				from * second, (from + rapid.Int64Range(0, 5).Draw(t, "life")) * second,
				rapid.Int64Range(1, 5).Draw(t, "tokens"),
			}
		}), 1, 12).Draw(t, "held")
		spec := perSecond(rapid.Int64Range(1, 3).Draw(t, "rate"), 2)
		most := int64(0)
		for a := int64(0); a <= 13; a++ {
			for b := a; b <= 13; b++ {
				sum := int64(0)
				for _, one := range list {
					if one.From <= b*second && one.Until >= a*second {
						sum += one.Tokens
					}
				}
				most = max(most, sum-spec.Burst-spec.Amount*(b-a))
			}
		}
		if got := Spendable(spec, list); got.Tokens != most {
			t.Fatalf("%+v, want %d tokens", got, most)
		}
	})
}
