//go:build !race

package retries_test

// measures: how long something takes says something.
const measures = true
