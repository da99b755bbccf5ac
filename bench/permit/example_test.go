package permit_test

import (
	"context"
	"fmt"
)

// The program that client/three_lines_test.go differs from in three lines.
func Example() {
	if err := callAll(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// call 0
	// call 1
	// call 2
	// call 3
	// call 4
	// call 5
	// call 6
	// call 7
	// call 8
	// call 9
}
