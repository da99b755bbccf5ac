package plan

import (
	"math"
	"math/big"
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
	Tasks int
	// P50, P90 and P99 are what so many of a hundred tasks stay within, Most what all
	// do.
	P50, P90, P99, Most int64
}

// SettledMin is how many tasks it takes to say anything of one in a hundred.
const SettledMin = 100

// Measure works the errors out. The error is a *QuestionError: too few tasks, or
// charges that are none.
func Measure(tasks []Settled) (Errors, error) {
	if len(tasks) < SettledMin {
		return Errors{}, wrong("settled", "", "%d tasks, at least %d", len(tasks), SettledMin)
	}
	over := make([]int64, len(tasks))
	for i, t := range tasks {
		if t.Charged < 1 || t.Used < 0 {
			return Errors{}, wrong("settled", "", "a task was charged %d and used %d", t.Charged, t.Used)
		}
		over[i] = t.over()
	}
	slices.Sort(over)
	// The nearest rank: so many are at most this.
	at := func(percent int) int64 { return over[(percent*len(over)+99)/100-1] }
	return Errors{Tasks: len(tasks), P50: at(50), P90: at(90), P99: at(99), Most: at(100)}, nil
}

func (t Settled) over() int64 {
	if t.Used <= t.Charged {
		return 0
	}
	n := new(big.Int).Mul(big.NewInt(t.Used-t.Charged), big.NewInt(bucket.Whole))
	n.Add(n, big.NewInt(t.Charged-1))
	if n.Quo(n, big.NewInt(t.Charged)); !n.IsInt64() {
		return math.MaxInt64
	}
	return n.Int64()
}
