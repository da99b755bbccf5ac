// Package bound has what the configurations of a gateway's parts have in common: defaults of
// numbers, and bounds.
package bound

import (
	"cmp"
	"fmt"
)

// Default gives a field its value where it has none.
func Default[T comparable](field *T, value T) {
	var absent T
	if *field == absent {
		*field = value
	}
}

// Within is an error where a value is out of its range, which has both ends.
func Within[T cmp.Ordered](name string, value, least, most T) error {
	if value < least || value > most {
		return fmt.Errorf("%s: %v, %v to %v", name, value, least, most)
	}
	return nil
}
