package planning

import (
	"math/big"
	"testing"
)

// TestNumbers: what is there is never written as none, however small it is, and what is
// large has no decimals that nobody reads.
func TestNumbers(t *testing.T) {
	t.Parallel()
	for of, want := range map[[2]int64][3]string{
		{0, 1}:             {"0/min", "0 s", "0"},
		{1, 1440}:          {"0.000694/min", "0.000694 s", "0.000694"},
		{1, 366 * 24 * 60}: {"0.0000019/min", "0.0000019 s", "0.0000019"},
		{-1, 1440}:         {"-0.000694/min", "-0.000694 s", "-0.000694"},
		{1, 12}:            {"0.0833/min", "0.0833 s", "0.083"},
		{1, 8}:             {"0.13/min", "0.13 s", "0.125"},
		{800, 3}:           {"266.7/min", "267 s", "266.667"},
		{88, 1}:            {"88/min", "88 s", "88"},
		{1500, 11}:         {"136.4/min", "136 s", "136.364"},
		{7500, 1}:          {"7500/min", "125 min", "7500"},
		{1 << 53, 1}:       {"9007199254740992/min", "150119987579017 min", "9007199254740992"},
	} {
		r := big.NewRat(of[0], of[1])
		if got := [3]string{perMinute(r), long(r), exact(r)}; got != want {
			t.Errorf("%v: %q, want %q", r, got, want)
		}
	}
	if got := [2]string{part(nil), percentOf(nil)}; got != [2]string{"∞", "infinite"} {
		t.Errorf("what is part of nothing is %q", got)
	}
	if got := [2]string{part(big.NewRat(1, 3)), percentOf(big.NewRat(1, 3))}; got != [2]string{"33.33%", "33.333"} {
		t.Errorf("a third is %q", got)
	}
}
