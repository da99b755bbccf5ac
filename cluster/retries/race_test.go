//go:build race

package retries_test

// slowdown is how much slower than usual this program may be: the race detector
// looks at every access.
const slowdown = 30
