package stat

import "slices"

// Jain is Jain's index of fairness over what each caller got: 1 where all got
// the same, 1/n where one of n got everything, and 1 where nobody got anything.
func Jain(got []int64) float64 {
	var sum, squares float64
	for _, x := range got {
		sum += float64(x)
		squares += float64(x) * float64(x)
	}
	if squares == 0 {
		return 1
	}
	return sum * sum / (float64(len(got)) * squares)
}

// Spread is the middle of some rounds and their ends.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// SpreadOf sums up the rounds. Of an even number the median is the mean of the
// middle two; of none everything is 0.
func SpreadOf(rounds []float64) Spread {
	if len(rounds) == 0 {
		return Spread{}
	}
	sorted := slices.Sorted(slices.Values(rounds))
	n := len(sorted)
	return Spread{
		Median: (sorted[(n-1)/2] + sorted[n/2]) / 2,
		Min:    sorted[0], Max: sorted[n-1],
	}
}
