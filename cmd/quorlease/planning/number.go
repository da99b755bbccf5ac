package planning

import (
	"math/big"
	"strings"
	"time"
)

// Numbers are rounded here, half away from zero, and nowhere before.

// decimals writes at most so many, without zeros at the end, and of what is so small that
// there would be one digit or none three digits: a request a day is not none a minute.
func decimals(r *big.Rat, most int) string {
	size := new(big.Rat).Abs(r)
	ten := big.NewRat(10, 1)
	for places := 1; places < most; places++ {
		size.Mul(size, ten)
	}
	for one := big.NewRat(1, 1); most > 1 && size.Sign() > 0 && size.Cmp(one) < 0; size.Mul(size, ten) {
		most++
		if size.Cmp(big.NewRat(1, 10)) >= 0 {
			// The third digit.
			most++
		}
	}
	text := r.FloatString(most)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	if text == "-0" {
		return "0"
	}
	return text
}

var hundred = big.NewRat(100, 1)

// short writes about three digits: two decimals below a hundred, else one.
func short(r *big.Rat) string {
	if new(big.Rat).Abs(r).Cmp(hundred) < 0 {
		return decimals(r, 2)
	}
	return decimals(r, 1)
}

// perMinute writes a rate of tasks.
func perMinute(r *big.Rat) string { return short(r) + "/min" }

// part writes a fraction as a percentage. Nil is part of nothing.
func part(r *big.Rat) string {
	if r == nil {
		return "∞"
	}
	return decimals(percent(r), 2) + "%"
}

// minutesFrom is from where on seconds are written as minutes.
var minutesFrom = big.NewRat(int64(10*time.Minute/time.Second), 1)

// long writes seconds as "N s" or "N min", with three digits.
func long(seconds *big.Rat) string {
	if seconds == nil {
		return "never"
	}
	unit := " s"
	if seconds.Cmp(minutesFrom) >= 0 {
		seconds, unit = new(big.Rat).Quo(seconds, big.NewRat(int64(time.Minute/time.Second), 1)), " min"
	}
	most := 2
	for edge := big.NewRat(10, 1); most > 0 && seconds.Cmp(edge) >= 0; most-- {
		edge.Mul(edge, big.NewRat(10, 1))
	}
	return decimals(seconds, most) + unit
}
