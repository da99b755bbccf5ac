package plot

import (
	"fmt"

	"github.com/quorlease/quorlease/bench/stat"
)

// Spread is a median and its ends for people. The unit stands behind the median as it
// is given.
func Spread(s stat.Spread, unit string) string {
	if s.Min == s.Max {
		return Number(s.Median) + unit
	}
	return fmt.Sprintf("%s%s (%s to %s)", Number(s.Median), unit, Number(s.Min), Number(s.Max))
}
