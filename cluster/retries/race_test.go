//go:build race

package retries_test

// measures: how long something takes says nothing, because the race detector looks
// at every access.
const measures = false
