package plan

import (
	"maps"
	"math"
	"math/bits"
	"slices"

	"github.com/quorlease/quorlease/fsm/bucket"
)

// Settled is a task of which is known what it was charged, by an estimate, and what it
// used. Charged is at least 1.
type Settled struct{ Charged, Used int64 }

// Errors say how much more than what they were charged tasks used, in hundredths of a
// percent of the charge, rounded up. A task that used less took nothing that the
// limit had not handed out, and counts as 0.
type Errors struct {
	Tasks int64
	// P50, P90 and P99 are what so many of a hundred tasks stay within, Most what all
	// do.
	P50, P90, P99, Most int64
}

// SettledMin is how many tasks it takes to say anything of one in a hundred.
const SettledMin = 100

// Measure works the errors out. The error is a *QuestionError: too few tasks, or
// charges that are none.
func Measure(tasks []Settled) (Errors, error) {
	tally := make(Tally)
	for _, t := range tasks {
		if t.Charged < 1 || t.Used < 0 {
			return Errors{}, wrong("settled", "", "a task was charged %d and used %d", t.Charged, t.Used)
		}
		tally[t.Over()]++
	}
	e := tally.Errors()
	if e.Tasks < SettledMin {
		return Errors{}, wrong("settled", "", "%d tasks, at least %d", e.Tasks, SettledMin)
	}
	return e, nil
}

// Over is by how much a task was off, as Errors say it. Charged is at least 1 and Used
// at least 0.
func (t Settled) Over() int64 {
	if t.Used <= t.Charged {
		return 0
	}
	charged := uint64(t.Charged)
	high, low := bits.Mul64(uint64(t.Used-t.Charged), bucket.Whole)
	low, carry := bits.Add64(low, charged-1, 0)
	if high += carry; high >= charged {
		return math.MaxInt64
	}
	over, _ := bits.Div64(high, low, charged)
	return int64(min(over, math.MaxInt64))
}

// Tally is how many tasks were off by how much. Counts are not negative, and together
// less than 2^63.
type Tally map[int64]int64

// Errors are what so many stay within, all 0 of no tasks.
func (t Tally) Errors() Errors {
	e := Errors{}
	for _, n := range t {
		e.Tasks += n
	}
	overs := slices.Sorted(maps.Keys(t))
	// The nearest rank: so many are at most this.
	at := func(percent int64) int64 {
		// The same as percent of Tasks, rounded up, where that times percent overflows.
		rank := e.Tasks/100*percent + (e.Tasks%100*percent+99)/100
		for _, over := range overs {
			if rank -= t[over]; rank <= 0 {
				return over
			}
		}
		return 0
	}
	e.P50, e.P90, e.P99, e.Most = at(50), at(90), at(99), at(100)
	return e
}
